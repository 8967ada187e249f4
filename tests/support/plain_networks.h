// A second implementation of the translation and image networks, written from the papers' equations
// with elementary operations and for one example at a time: no batches, no caches, no plans, none
// of our norms or attention. Weights are read by the network's own names. Tests compare rondo/model
// with it, in double.
#pragma once

#include "rondo/model/network.h"

namespace rondo::test {

// Weights by name, and the building blocks of all networks. x is [T, D].
class PlainParts {
 public:
  PlainParts(const torch::nn::Module& network, double epsilon);

  Tensor weight(const std::string& name) const;
  bool has(const std::string& name) const { return weights_.count(name) != 0; }

  // W x + b, with the bias if there is one.
  Tensor map(const std::string& name, const Tensor& x) const;
  // LayerNorm by its definition, with the given epsilon.
  Tensor norm(const std::string& name, const Tensor& x) const;
  // g(x) = A Bᵀ x with the matrix formed explicitly.
  Tensor signal(const std::string& name, const Tensor& x) const;
  // Attention of queries to keys, head by head; `mask` [Tq, Tk] bool. Then the output map.
  Tensor attention(const std::string& name, const Tensor& q, const Tensor& k, const Tensor& v,
                   int64_t heads, const Tensor& mask) const;
  // The same where queries, keys and values are maps of the inputs.
  Tensor attention(const std::string& name, const Tensor& u, const Tensor& memory, int64_t heads,
                   const Tensor& mask) const;

 private:
  NamedTensors weights_;
  double epsilon_;
};

// "norm", 3 → "norm.3"
std::string numbered(const std::string& bank, int64_t index);

// Position codes [T, D]. Universal's static table: position, level and dimension k count from 1.
Tensor universal_code(int64_t tokens, int64_t level, int64_t width);
// Dimension i even: sin(p / 10000^(i/d)); i + 1: its cosine. Positions count from 0.
Tensor sinusoids(int64_t tokens, int64_t width);

// x / 2 · (1 + erf(x / √2))
Tensor plain_gelu(const Tensor& x);

// Logits [B, T, V] of a translation model of scheme vanilla, universal, one-wide or ring (style
// ringformer), or of blocks applied in loops (style fairseq). `epsilon`: of all norms.
Tensor plain_translation(const Network& network, const EncoderDecoderConfig& config,
                         const NamedTensors& inputs, double epsilon);

// Logits [B, classes] of a flat image model: the same schemes, or Mixer. `epsilon`: of the level
// norms; the last norm's is 1e-6.
Tensor plain_vision(const Network& network, const VisionConfig& config, const NamedTensors& inputs,
                    double epsilon);

// Logits [B, classes] of a pyramid over patches with a class token, every block applied once: PiT.
Tensor plain_pit(const Network& network, const PyramidConfig& config, const NamedTensors& inputs);

}  // namespace rondo::test
