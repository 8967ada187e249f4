// Shares of tokens, carried from the last level to the first as a row vector.
#include "rondo/study/rollout.h"

#include "rondo/base/require.h"

namespace rondo::study {

Tensor whole_attention(const Tensor& p, const Tensor& permutation) {
  const int64_t groups = p.size(0);
  const int64_t each = p.size(2);
  Tensor all = at::zeros({groups * each, groups * each}, at::kDouble);
  const Tensor mean = p.to(at::kDouble).mean(1);  // [G, n, n]
  for (int64_t g = 0; g < groups; ++g) {
    all.narrow(0, g * each, each).narrow(1, g * each, each).copy_(mean[g]);
  }
  if (!permutation.defined()) return all;
  // Position i holds token permutation[i].
  const Tensor back = permutation.argsort();
  return all.index_select(0, back).index_select(1, back);
}

Tensor rollout_start(int64_t tokens, bool class_token) {
  if (!class_token) return at::full({tokens}, 1.0 / static_cast<double>(tokens), at::kDouble);
  Tensor start = at::zeros({tokens}, at::kDouble);
  start[0] = 1.0;
  return start;
}

Tensor rollout(const std::vector<Tensor>& levels, const Tensor& start) {
  Tensor seen = start;
  for (size_t i = levels.size(); i-- > 0;) seen = (at::matmul(seen, levels[i]) + seen) / 2.0;
  return seen;
}

Tensor unpool(const Tensor& coarse, int64_t side, bool class_token) {
  const int64_t skip = class_token ? 1 : 0;
  const int64_t small = (side + 1) / 2;
  require(coarse.size(0) == small * small + skip,
          "rollout: expected {} tokens after pooling {} x {} patches, got {}", small * small + skip,
          side, side, coarse.size(0));
  // Along one axis, convolution i sees patches 2i - 1 to 2i + 1: [small, side].
  Tensor seen = at::zeros({small, side}, at::kDouble);
  for (int64_t i = 0; i < small; ++i) {
    for (const int64_t step : {-1, 0, 1}) {
      const int64_t at = 2 * i + step;
      if (at >= 0 && at < side) seen[i][at] = step == 0 ? 2.0 : 1.0;
    }
  }
  seen = seen / seen.sum(1, /*keepdim=*/true);
  const Tensor grid = coarse.slice(0, skip).view({small, small});
  const Tensor fine = at::matmul(at::matmul(seen.t(), grid), seen).flatten();  // [side · side]
  return class_token ? at::cat({coarse.slice(0, 0, 1), fine}) : fine;
}

}  // namespace rondo::study
