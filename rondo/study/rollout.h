// Attention rollout (Abnar and Zuidema, 2020): how much of each patch of an image reaches the
// output of a network, if every level passes on half of a token and half of what it attends to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rondo/model/network.h"

namespace rondo::study {

// A [N, N] from groups of tokens p [G, H, n, n]: the mean over heads, tokens in their original
// order. `permutation` may be undefined.
Tensor whole_attention(const Tensor& p, const Tensor& permutation);

// Where the output of a stack begins: the class token, or all N tokens equally. [N]
Tensor rollout_start(int64_t tokens, bool class_token);

// start (A_L + 1)/2 … (A_1 + 1)/2: the share of each token [N] in `start` [N]. Levels A [N, N], in
// order of depth.
Tensor rollout(const std::vector<Tensor>& levels, const Tensor& start);

// Through the pooling between two stages of a pyramid, backward: the share of each token of the
// finer grid of `side` x `side` patches, given those of the coarser one [N]. Each is spread over
// the patches that its convolution (3 x 3, stride 2, padding 1) sees, 1 : 2 : 1 along both axes:
// then patches that one convolution sees count as much as those that several see. A class token
// stays what it is.
Tensor unpool(const Tensor& coarse, int64_t side, bool class_token);

// Keeps what a forward pass reports of levels under names with one of these endings.
class LevelActivations : public Observer {
 public:
  explicit LevelActivations(std::vector<std::string> endings) : endings_(std::move(endings)) {}
  bool wants(const std::string& name) override;
  void activation(const std::string& name, const Tensor& value) override { all_[name] = value; }
  Tensor get(const std::string& name) const;  // undefined if not reported

 private:
  std::vector<std::string> endings_;
  std::map<std::string, Tensor> all_;
};

// The endings that attention_of() reads.
std::vector<std::string> attention_endings();

// Attention of one stack on one image.
struct StackAttention {
  std::vector<Tensor> levels;  // [N, N]; empty if a level has no attention
  int64_t side = 0;            // of the grid of patches
  bool class_token = false;
};

// Of all stacks in order of depth, for one of the `rows` images of a forward pass.
std::vector<StackAttention> attention_of(const LevelActivations& seen, const Network& network,
                                         int64_t item, int64_t rows);

// The share of each patch of the image in the output of a level: through the levels below it in its
// stack and, in a pyramid, the pooling and all levels of the stages before. [h, w] of the first
// stage. Every stack has attention.
Tensor rollout_until(const std::vector<StackAttention>& stacks, size_t stack, size_t level);

// Tokens of a square grid [T, D] or [T], without a leading class token: [D, h, w] or [h, w].
Tensor as_map(const Tensor& tokens);

}  // namespace rondo::study
