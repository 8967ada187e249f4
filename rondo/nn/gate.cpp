// Gates.
#include "rondo/nn/gate.h"

#include <cmath>

namespace rondo::nn {

Gate::Gate(GateKind kind, int64_t width, int64_t hidden, Initializer forget) {
  if (kind == GateKind::fixed) {
    bias_ = parameter("bias", {width}, forget);
    return;
  }
  const Initializer weight = truncated_normal(std::sqrt(0.1 / static_cast<double>(hidden)));
  const Initializer input = forget.kind == Initializer::Kind::constant ? constant(0.0) : forget;
  input_ = register_module(
      "input", std::make_shared<Linear>(hidden, width, true, LinearInit{weight, input}));
  forget_ = register_module(
      "forget", std::make_shared<Linear>(hidden, width, true, LinearInit{weight, forget}));
}

Tensor Gate::forward(const Tensor& c, const Tensor& z, const Tensor& h, const Scope& scope) const {
  if (bias_.defined()) {
    const Tensor keep = at::sigmoid(bias_);
    scope.record("gate", keep);
    return c * keep + z * (1.0 - keep);
  }
  const Tensor keep = at::sigmoid(forget_->forward(h, scope / "forget") + 1.0);
  const Tensor take = at::sigmoid(input_->forward(h, scope / "input") - 1.0);
  scope.record("gate", keep);
  return c * keep + z * take;
}

CompiledGate Gate::compile(WeightPacker& packer) const {
  const at::NoGradGuard no_grad;
  CompiledGate gate;
  if (bias_.defined()) {
    gate.width = bias_.size(0);
    gate.keep = packer.vector(at::sigmoid(bias_));
    return gate;
  }
  gate.width = forget_->weight().size(0);
  gate.forget = packer.linear(forget_->weight(), forget_->bias() + 1.0);
  gate.input = packer.linear(input_->weight(), input_->bias() - 1.0);
  return gate;
}

void CompiledGate::forward(const Rows& c, const Rows& z, const Rows& h, const Rows& forget_rows,
                           const Rows& input_rows) const {
  if (keep != nullptr) {
    for (int64_t r = 0; r < c.count; ++r) kernels::fixed_gate_one(z[r], keep, width, c[r]);
    return;
  }
  const kernels::Member alone;
  forget.forward(h, forget_rows, alone);
  input.forward(h, input_rows, alone);
  for (int64_t r = 0; r < c.count; ++r) {
    kernels::lstm_gate_one(z[r], forget_rows[r], input_rows[r], width, c[r]);
  }
}

}  // namespace rondo::nn
