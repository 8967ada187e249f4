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

}  // namespace rondo::nn
