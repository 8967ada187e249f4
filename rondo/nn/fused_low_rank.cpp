// A map of low rank and its input as an autograd function.
#include "rondo/nn/fused_low_rank.h"

#include <torch/csrc/autograd/custom_function.h>

#include "rondo/nn/products.h"

namespace rondo::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LowRankTypes {
  at::ScalarType factor = at::kFloat;
  at::ScalarType result = at::kFloat;
};

// What the forward pass makes, all of it needed again but the sum. M rows of D numbers.
struct LowRankPass {
  Tensor in;        // [M, D] x as a factor
  Tensor down, up;  // [r, D] as factors
  Tensor inner;     // [M, r] x downᵀ
  Tensor sum;       // as x
};

LowRankPass run_low_rank(const Tensor& x, const Tensor& down, const Tensor& up,
                         const LowRankTypes& types) {
  const auto factor = [&](const Tensor& w) {
    return types.factor == at::kBFloat16 ? bf16_weight(w) : w.detach().contiguous();
  };
  LowRankPass pass;
  const Tensor rows = as_rows(x.detach(), at::kFloat);
  pass.in = rows.to(types.factor);
  pass.down = factor(down);
  pass.up = factor(up);
  pass.inner = product_of_rows({{pass.in, pass.down}}, true, {types.factor});
  pass.sum = product_of_rows({{pass.inner, pass.up}}, false, {types.result, Tensor(), rows})
                 .view(x.sizes());
  return pass;
}

class LowRankSum : public torch::autograd::Function<LowRankSum> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& down,
                        const Tensor& up, const LowRankTypes& types) {
    const LowRankPass pass = run_low_rank(x, down, up, types);
    const auto leaf = [](const Tensor& w) { return w.is_leaf() ? w : Tensor(); };  // has a grad()
    context->save_for_backward({pass.in, pass.down, pass.up, pass.inner, leaf(down), leaf(up)});
    context->saved_data["shape"] = x.sizes().vec();
    context->saved_data["x"] = x.requires_grad();
    context->saved_data["down"] = down.requires_grad();
    context->saved_data["up"] = up.requires_grad();
    return pass.sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& in = saved[0];
    const auto learns = [&](const char* what) { return context->saved_data[what].toBool(); };
    const at::ScalarType type = in.scalar_type();
    const Tensor g = as_rows(gradients[0], gradients[0].scalar_type());  // [M, D]
    const Tensor dy = g.to(type);
    const Tensor d_inner = product_of_rows({{dy, saved[2]}}, true, {type});  // [M, r]
    variable_list out(4);
    if (learns("x")) {
      out[0] = product_of_rows({{d_inner, saved[1]}}, false, {at::kFloat, Tensor(), g})  // [M, D]
                   .view(context->saved_data["shape"].toIntVector());
    }
    if (learns("down")) out[1] = hand_on_gradient(saved[4], d_inner, in);
    if (learns("up")) out[2] = hand_on_gradient(saved[5], saved[3], dy);
    return out;
  }
};

}  // namespace

Tensor fused_low_rank_sum(const Tensor& x, const Tensor& down, const Tensor& up, bool bf16,
                          Result result) {
  LowRankTypes types;
  if (bf16) types.factor = at::kBFloat16;
  if (bf16 && result == Result::branch && branches_in_bf16()) types.result = at::kBFloat16;
  const bool learns = x.requires_grad() || down.requires_grad() || up.requires_grad();
  if (!learns || !at::GradMode::is_enabled()) return run_low_rank(x, down, up, types).sum;
  return LowRankSum::apply(x, down, up, types);
}

}  // namespace rondo::nn
