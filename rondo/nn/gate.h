// Gates that combine a new value z with a state c, instead of a residual connection.
#pragma once

#include "rondo/nn/layers.h"

namespace rondo::nn {

enum class GateKind { fixed, lstm };

// Compiled for inference (compiled.h).
struct CompiledGate {
  int64_t width = 0;             // 0: absent
  const float* keep = nullptr;   // fixed: σ(b) [D]
  CompiledLinear forget, input;  // lstm: biases include the 1 and -1

  bool there() const { return width > 0; }
  // Updates c in place. An lstm gate uses `forget_rows` and `input_rows` as scratch.
  void forward(const Rows& c, const Rows& z, const Rows& h, const Rows& forget_rows,
               const Rows& input_rows) const;
};

// fixed: c·σ(b) + z·(1 - σ(b)), b learned per channel.
// lstm:  c·σ(W_f h + b_f + 1) + z·σ(W_i h + b_i - 1), with h the input of the map that makes z.
class Gate : public Module {
 public:
  // `forget`: initializer of the bias that keeps c; the other bias of an lstm gate uses the same
  // initializer, or starts at 0 if that is a constant.
  Gate(GateKind kind, int64_t width, int64_t hidden, Initializer forget = normal(0.1));
  Tensor forward(const Tensor& c, const Tensor& z, const Tensor& h, const Scope& scope) const;
  CompiledGate compile(WeightPacker& packer) const;

 private:
  Tensor bias_;                             // fixed [D]
  std::shared_ptr<Linear> input_, forget_;  // lstm
};

}  // namespace rondo::nn
