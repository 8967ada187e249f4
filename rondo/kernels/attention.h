// Attention in tiles: softmax(q·kᵀ·factor + bias, masked, dropped out)·v and its gradients, without
// ever holding a Tq × Tk matrix. Scores, softmax and sums are fp32; the data are fp32 or bf16.
// Tiles that a mask hides as a whole are skipped, so a causal mask costs half. No torch here; SIMD
// by Highway, chosen at run time (AVX-512 with BF16, AVX-512, AVX2, SSE4, plain).
//
// Results do not depend on the number of threads, nor on how often one asks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rondo::kernels {

enum class Element { fp32, bf16 };

// Where the rows of a [B, H, T, d] array lie, in elements. A row itself is contiguous.
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
  // Non-zero where query i sees key j: mask[b · mask_batch + i · mask_row + j]. Null:
  // everywhere. Strides of 0 say that all of the batch, or all queries, see the same.
  const uint8_t* mask = nullptr;
  int64_t mask_batch = 0;
  int64_t mask_row = 0;
  // Probability (b, h, i, j) is dropped as kernels::dropout drops place ((b·H + h)·Tq + i)·Tk + j.
  double dropout = 0.0;
  uint64_t seed = 0;
};

// `lse` [B, H, Tq] receives log Σ exp(scores), which the gradients need; null if nobody will ask.
// A query that sees no key gets 0 and an lse of +∞.
void attention_forward(const AttentionProblem& problem, const Sink& out, float* lse, int threads);

// What came out, and the gradient with respect to it.
struct AttentionResult {
  Source out;
  Source gradient;
  const float* lse = nullptr;
};

// Of the data's own type, rounded once from fp32 sums: a caller under mixed precision hands them on
// in bf16 anyway. `bias` [H, Tq, Tk], summed over the batch, and `factor` [H] may be null.
struct AttentionGradients {
  Sink q;
  Sink k;
  Sink v;
  float* bias = nullptr;
  float* factor = nullptr;
};

void attention_backward(const AttentionProblem& problem, const AttentionResult& result,
                        const AttentionGradients& gradients, int threads);

// What the kernels are compiled for and this CPU has, best first ("AVX3_BF16", "AVX3", "AVX2",
// ...).
std::vector<std::string> attention_targets();
// Takes that one from now on, in the whole process; empty: the best. For tests and comparisons.
void use_attention_target(const std::string& name);

}  // namespace rondo::kernels
