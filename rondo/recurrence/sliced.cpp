// Slicing into groups, permuting and inverting permutations.
#include "rondo/recurrence/sliced.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "rondo/base/error.h"
#include "rondo/nn/module.h"

namespace rondo {
namespace {

constexpr uint64_t kEvaluationSeed = 20220507;  // arbitrary, but fixed: results must repeat

Tensor checked_permutation(const Tensor& given, int64_t tokens, int64_t use) {
  const auto refuse = [&](const std::string& got) {
    return Error(ExitCode::bad_input,
                 fmt::format("permutation.{}: expected a permutation of {} tokens, got {}", use,
                             tokens, got),
                 "permutations are int64, one per permuted level in order of use");
  };
  if (given.dim() != 1 || given.size(0) != tokens || given.scalar_type() != at::kLong) {
    throw refuse(
        fmt::format("{} of {} entries", c10::toString(given.scalar_type()), given.numel()));
  }
  const Tensor sorted = std::get<0>(given.sort());
  if (!sorted.equal(at::arange(tokens, at::kLong))) throw refuse("repeated or missing numbers");
  return given;
}

// Cached: every image uses the same permutations, and drawing one seeds a generator.
Tensor fixed_permutation(int64_t use, int64_t tokens) {
  constexpr size_t kMost = 256;  // images come in few sizes
  thread_local std::map<std::pair<int64_t, int64_t>, Tensor> drawn;
  if (drawn.size() > kMost) drawn.clear();
  Tensor& permutation = drawn[{use, tokens}];
  if (!permutation.defined()) {
    const auto generator =
        nn::counter_generator(kEvaluationSeed, "permutation", static_cast<uint64_t>(use));
    permutation = at::randperm(tokens, generator, at::kLong);
  }
  return permutation;
}

// Gathers the tokens of x [B, N, D] with one memcpy per row; torch sets up a copy for each.
Tensor taken(const Tensor& x, const Tensor& order) {
  if (x.is_meta()) return at::empty_like(x);
  if (!x.is_cpu() || x.dim() != 3) return x.index_select(1, order.to(x.device()));
  const Tensor from = x.contiguous();
  Tensor to = at::empty_like(from);
  const int64_t tokens = from.size(1);
  const auto bytes = from.size(2) * static_cast<int64_t>(from.element_size());
  const auto* source = static_cast<const char*>(from.data_ptr());
  auto* target = static_cast<char*>(to.data_ptr());
  const int64_t* places = order.data_ptr<int64_t>();
  constexpr int64_t kWorthThreads = 1 << 16;  // bytes
  at::parallel_for(0, from.size(0) * tokens, kWorthThreads / std::max<int64_t>(1, bytes) + 1,
                   [&](int64_t first, int64_t last) {
                     for (int64_t i = first; i < last; ++i) {
                       const int64_t row = i / tokens * tokens + places[i % tokens];
                       std::memcpy(target + i * bytes, source + row * bytes,
                                   static_cast<size_t>(bytes));
                     }
                   });
  return to;
}

class PermuteTokens : public torch::autograd::Function<PermuteTokens> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        const Tensor& permutation) {
    context->save_for_backward({permutation});
    return taken(x, permutation);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const Tensor back = invert(context->get_saved_variables()[0]);
    return {permute_tokens(gradients[0], back), Tensor()};
  }
};

}  // namespace

Tensor Permutations::next(int64_t tokens) {
  const int64_t use = used_++;
  if (use_given()) {
    if (use >= static_cast<int64_t>(given_.size())) {
      throw Error(ExitCode::bad_input,
                  fmt::format("permutation.{}: missing; {} were given", use, given_.size()),
                  "pass one per permuted level, or none");
    }
    return checked_permutation(given_[static_cast<size_t>(use)], tokens, use);
  }
  if (draw_ == Draw::random) return at::randperm(tokens, at::kLong);
  return fixed_permutation(use, tokens);
}

Tensor invert(const Tensor& permutation) {
  return at::empty_like(permutation)
      .scatter_(0, permutation, at::arange(permutation.size(0), permutation.options()));
}

Tensor permute_tokens(const Tensor& x, const Tensor& permutation) {
  return PermuteTokens::apply(x, permutation);
}

SlicePlan slice_plan(const std::string& mode, int64_t loop, int64_t groups) {
  if (loop == 0 || (groups == 1 && mode == "P+I-L")) return {};
  return {true, mode != "P"};
}

Tensor slice_groups(const Tensor& x, int64_t groups) {
  if (groups == 1) return x;
  const int64_t tokens = x.size(2);
  if (tokens % groups != 0) {
    throw Error(ExitCode::bad_input,
                fmt::format("sliced attention: {} tokens cannot be cut into {} equal groups",
                            tokens, groups),
                "choose another image size, or groups that divide the tokens of every stage");
  }
  // Heads are stored as [B, T, H, d], so groups of tokens are only a view.
  return x.transpose(1, 2)
      .reshape({x.size(0) * groups, tokens / groups, x.size(1), x.size(3)})
      .transpose(1, 2);
}

Tensor join_groups(const Tensor& x, int64_t groups) {
  if (groups == 1) return x;
  return x.transpose(1, 2)
      .reshape({x.size(0) / groups, groups * x.size(2), x.size(1), x.size(3)})
      .transpose(1, 2);
}

}  // namespace rondo
