// Keys and values of the tokens of a search. Its rows go on as continuations of other rows at every
// token; nothing is moved for that, every row knows where its tokens stand. Unlike a State this is
// no value: one search has one.
#pragma once

#include "rondo/nn/torch.h"

namespace rondo {

class BeamCache {
 public:
  // Tokens that every row has behind it.
  int64_t tokens() const { return static_cast<int64_t>(visible_.size()); }
  // Rows go on as continuations of rows `from`.
  void follow(const std::vector<int64_t>& from);
  // One more token of every row; `visible` [R, 1] (bool) says which of them may be seen.
  void add_token(const Tensor& visible);
  // Keeps what a level makes of the newest tokens, k and v [R, H, 1, d], and lets q [R, H, 1, d]
  // see all tokens of its row: softmax(q·kᵀ · factor) · v, [R, H, 1, d]. Without gradients.
  Tensor attend(int64_t level, const Tensor& q, const Tensor& k, const Tensor& v, double factor);

 private:
  struct Token {
    Tensor keys, values;  // fp32 [R then, H · d]
  };

  Tensor attend_fused(const std::vector<Token>& level, const Tensor& q, double factor) const;
  Tensor attend_plainly(const std::vector<Token>& level, const Tensor& q, double factor) const;

  std::vector<std::vector<Token>> levels_;    // [level, token]
  std::vector<Tensor> visible_;               // of each token [R then, 1]; undefined: all are
  std::vector<std::vector<int64_t>> places_;  // [R, token]: which row had it then
};

}  // namespace rondo
