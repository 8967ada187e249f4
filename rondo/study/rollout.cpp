// Shares of tokens, carried from the last level to the first as a row vector.
#include "rondo/study/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/base/require.h"
#include "rondo/recurrence/stack.h"

namespace rondo::study {
namespace {

bool ends(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

StackAttention stack_attention(const LevelActivations& seen, const std::string& stack,
                               int64_t levels, int64_t item, int64_t rows) {
  StackAttention found;
  for (int64_t i = 0; i < levels; ++i) {
    const std::string scope = fmt::format("{}.level.{}.mixing.", stack, i);
    const Tensor all = seen.get(scope + "probabilities");
    if (!all.defined()) return {};
    const int64_t groups = all.size(0) / rows;
    found.levels.push_back(
        whole_attention(all.narrow(0, item * groups, groups), seen.get(scope + "permutation")));
  }
  const int64_t tokens = found.levels.front().size(0);
  found.side = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens)));
  found.class_token = tokens != found.side * found.side;
  return found;
}

}  // namespace

bool LevelActivations::wants(const std::string& name) {
  return name.find(".level.") != std::string::npos &&
         std::any_of(endings_.begin(), endings_.end(),
                     [&](const std::string& end) { return ends(name, end); });
}

Tensor LevelActivations::get(const std::string& name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? Tensor() : found->second;
}

std::vector<std::string> attention_endings() {
  return {".mixing.probabilities", ".mixing.permutation"};
}

std::vector<StackAttention> attention_of(const LevelActivations& seen, const Network& network,
                                         int64_t item, int64_t rows) {
  std::vector<StackAttention> found;
  for (const auto& [name, stack] : network.stacks()) {
    found.push_back(stack_attention(seen, name, stack->plan().size(), item, rows));
  }
  return found;
}

Tensor rollout_until(const std::vector<StackAttention>& stacks, size_t stack, size_t level) {
  const StackAttention& last = stacks.at(stack);
  const std::vector<Tensor> below(last.levels.begin(),
                                  last.levels.begin() + static_cast<std::ptrdiff_t>(level) + 1);
  Tensor seen = rollout(below, rollout_start(below[0].size(0), last.class_token));
  for (size_t s = stack; s-- > 0;) {
    seen = rollout(stacks[s].levels, unpool(seen, stacks[s].side, stacks[s].class_token));
  }
  return as_map(seen);
}

Tensor as_map(const Tensor& tokens) {
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens.size(0))));
  const Tensor patches = tokens.slice(0, tokens.size(0) - side * side);
  if (tokens.dim() == 1) return patches.reshape({side, side});
  return patches.t().reshape({tokens.size(1), side, side});
}

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
