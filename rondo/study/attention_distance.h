// Attention distance per head: RingFormer's Figure 3, after Dosovitskiy et al. (2021).
#pragma once

#include "rondo/nn/torch.h"

namespace rondo::study {

// Distances between the centers of patches of `patch` pixels on a grid of rows × columns, in
// row-major order: [rows · columns, rows · columns], double.
Tensor patch_distances(int64_t rows, int64_t columns, double patch);
// |i - j| between `tokens` tokens of a text.
Tensor token_distances(int64_t tokens);

// Σ_k probability(q, k) · distance(q, k), averaged over queries: [B, H] from probabilities
// [B, H, T + skip, T + skip] and distances [T, T]. The first `skip` tokens (a class token) are
// dropped as queries and keys without renormalizing the rest, as the authors do.
Tensor attention_distance(const Tensor& probabilities, const Tensor& distances, int64_t skip = 0);

// -Σ_k p log p in nats, averaged over queries: [B, H] from [B, H, Tq, Tk].
Tensor attention_entropy(const Tensor& probabilities);

}  // namespace rondo::study
