// Tiled attention: softmax(q·kᵀ·factor + bias, masked, with dropout)·v and its gradients, without
// materializing a Tq × Tk matrix. Scores, softmax and sums are fp32; the data are fp32 or bf16.
// Fully masked tiles are skipped, so a causal mask halves the cost. No torch dependency; SIMD via
// Highway, dispatched at run time (AVX-512 with BF16, AVX-512, AVX2, SSE4, scalar).
//
// Results are deterministic and do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rondo::kernels {

enum class Element { fp32, bf16 };

// Strides of a [B, H, T, d] array, in elements. Rows themselves are contiguous.
struct Strides {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t row = 0;
};

struct Source {
  const void* data = nullptr;
  Strides strides;
};

struct Sink {
  void* data = nullptr;
  Strides strides;
};

struct AttentionProblem {
  Element element = Element::fp32;  // of q, k, v, out and their gradients
  int64_t batch = 0;                // B
  int64_t heads = 0;                // H
  int64_t queries = 0;              // Tq
  int64_t keys = 0;                 // Tk
  int64_t width = 0;                // d
  Source q;                         // [B, H, Tq, d]
  Source k;                         // [B, H, Tk, d]
  Source v;                         // [B, H, Tk, d]
  const float* factor = nullptr;    // [H], multiplied into the scores
  const float* bias = nullptr;      // [H, Tq, Tk], added after the factor; may be null
  // Nonzero where query i sees key j: mask[b · mask_batch + i · mask_row + j]. Null: everywhere. A
  // stride of 0 means the whole batch, or all queries, share the mask.
  const uint8_t* mask = nullptr;
  int64_t mask_batch = 0;
  int64_t mask_row = 0;
  // Probability (b, h, i, j) is dropped like position ((b·H + h)·Tq + i)·Tk + j of
  // kernels::dropout.
  double dropout = 0.0;
  uint64_t seed = 0;
};

// `lse` [B, H, Tq] receives log Σ exp(scores), which the backward pass needs; may be null. A query
// that sees no key gets an output of 0 and an lse of +∞.
void attention_forward(const AttentionProblem& problem, const Sink& out, float* lse, int threads);

// Output of the forward pass, and the gradient with respect to it.
struct AttentionResult {
  Source out;
  Source gradient;
  const float* lse = nullptr;
};

// In the data's own type, rounded once from fp32 sums: under mixed precision the caller passes them
// on in bf16 anyway. `bias` [H, Tq, Tk], summed over the batch, and `factor` [H] may be null.
struct AttentionGradients {
  Sink q;
  Sink k;
  Sink v;
  float* bias = nullptr;
  float* factor = nullptr;
};

void attention_backward(const AttentionProblem& problem, const AttentionResult& result,
                        const AttentionGradients& gradients, int threads);

// Targets that are compiled in and supported by this CPU, best first ("AVX3_BF16", "AVX3", "AVX2",
// ...).
std::vector<std::string> attention_targets();
// Selects a target for the whole process; empty: the best one. For tests and comparisons.
void use_attention_target(const std::string& name);

}  // namespace rondo::kernels
