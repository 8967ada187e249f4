// Gates that join a new value z to a kept state c, in place of a residual connection.
#pragma once

#include "rondo/nn/layers.h"

namespace rondo::nn {

enum class GateKind { fixed, lstm };

// As inference runs it (compiled.h).
struct CompiledGate {
  int64_t width = 0;             // 0: there is none
  const float* keep = nullptr;   // fixed: σ(b) [D]
  CompiledLinear forget, input;  // lstm: the 1 and -1 are in their biases

  bool there() const { return width > 0; }
  // c, in place. What an lstm gate computes on its way goes to `forget_rows` and `input_rows`.
  void forward(const Rows& c, const Rows& z, const Rows& h, const Rows& forget_rows,
               const Rows& input_rows) const;
};

// fixed: c·σ(b) + z·(1 - σ(b)), b learned per channel.
// lstm:  c·σ(W_f h + b_f + 1) + z·σ(W_i h + b_i - 1), h being what the map that makes z reads.
class Gate : public Module {
 public:
  // `forget`: initializer of the bias that makes c be kept; an lstm gate's other bias starts with
  // the same initializer, or at 0 where that is a constant.
  Gate(GateKind kind, int64_t width, int64_t hidden, Initializer forget = normal(0.1));
  Tensor forward(const Tensor& c, const Tensor& z, const Tensor& h, const Scope& scope) const;
  CompiledGate compile(WeightPacker& packer) const;

 private:
  Tensor bias_;                             // fixed [D]
  std::shared_ptr<Linear> input_, forget_;  // lstm
};

}  // namespace rondo::nn
