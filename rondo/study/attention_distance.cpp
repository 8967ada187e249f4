// Attention-weighted distances.
#include "rondo/study/attention_distance.h"

#include "rondo/base/require.h"

namespace rondo::study {

Tensor patch_distances(int64_t rows, int64_t columns, double patch) {
  require(rows >= 1 && columns >= 1 && patch > 0,
          "attention distance: expected a grid of patches, got {} x {} of {} pixels", rows, columns,
          patch);
  const Tensor y = at::arange(rows, at::kDouble).repeat_interleave(columns);  // [T]
  const Tensor x = at::arange(columns, at::kDouble).repeat({rows});
  const auto apart = [](const Tensor& at) { return (at.unsqueeze(1) - at.unsqueeze(0)).square(); };
  return (apart(y) + apart(x)).sqrt() * patch;
}

Tensor token_distances(int64_t tokens) {
  const Tensor t = at::arange(tokens, at::kDouble);
  return (t.unsqueeze(1) - t.unsqueeze(0)).abs();
}

Tensor attention_distance(const Tensor& probabilities, const Tensor& distances, int64_t skip) {
  const int64_t tokens = distances.size(0);
  require(probabilities.dim() == 4 && probabilities.size(2) == tokens + skip &&
              probabilities.size(3) == tokens + skip,
          "attention distance: expected probabilities of {} tokens, got {} dimensions and {} keys",
          tokens + skip, probabilities.dim(), probabilities.size(-1));
  const Tensor p = probabilities.slice(2, skip).slice(3, skip).to(at::kDouble);  // [B, H, T, T]
  return (p * distances).sum(3).mean(2);
}

Tensor attention_entropy(const Tensor& probabilities) {
  const Tensor p = probabilities.to(at::kDouble);
  return -at::xlogy(p, p).sum(3).mean(2);
}

}  // namespace rondo::study
