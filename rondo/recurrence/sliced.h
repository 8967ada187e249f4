// SReT's sliced group self-attention: tokens are split into G groups of neighbors, with attention
// within each group; later loops permute the tokens first, so that the groups differ.
#pragma once

#include "rondo/nn/torch.h"

namespace rondo {

// The permutations of one forward pass, in order of use.
class Permutations {
 public:
  enum class Draw { fixed, random };

  // Fixed: a function of (use, tokens) alone, so that results are reproducible. Random: drawn from
  // torch's generator, which the caller seeds.
  explicit Permutations(Draw draw) : draw_(draw) {}
  // Given by the caller, each int64 [N].
  explicit Permutations(std::vector<Tensor> given) : given_(std::move(given)) {}

  // Throws Error{bad_input} if a given one is missing or not a permutation of `tokens`.
  Tensor next(int64_t tokens);

 private:
  Draw draw_ = Draw::fixed;
  std::vector<Tensor> given_;
  bool use_given() const { return !given_.empty(); }
  int64_t used_ = 0;
};

// The inverse: inverse[permutation[i]] = i.
Tensor invert(const Tensor& permutation);
// Tokens of x [B, N, D] in that order. The backward pass gathers by the inverse; torch would
// scatter-add into zeros, row by row.
Tensor permute_tokens(const Tensor& x, const Tensor& permutation);

// Whether a level permutes its tokens, and inverts that afterwards, by mode ("P", "P+I", "P+I-L"):
// the first loop never permutes; P+I-L does not permute a single group; P never inverts.
struct SlicePlan {
  bool permute = false;
  bool invert = false;
};
SlicePlan slice_plan(const std::string& mode, int64_t loop, int64_t groups);

// [B, H, N, d] → [B·G, H, N/G, d] and back; G = 1 is a no-op. Throws Error{bad_input} if G does not
// divide N.
Tensor slice_groups(const Tensor& x, int64_t groups);
Tensor join_groups(const Tensor& x, int64_t groups);

}  // namespace rondo
