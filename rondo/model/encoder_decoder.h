// Translation: an encoder over the source and a causal decoder over the target that attends to it.
// Two styles: RingFormer's (no biases, GELU, sinusoidal positions, separate head) and fairseq's
// (biases, ReLU, scaled embeddings, head tied to the target embedding), both post-norm.
#pragma once

#include "rondo/model/network.h"
#include "rondo/recurrence/stack.h"

namespace rondo {

class EncoderDecoder : public Network {
 public:
  explicit EncoderDecoder(const EncoderDecoderConfig& config);

  NamedTensors forward(const NamedTensors& inputs, State& state, const Scope& scope) override;
  Tensor loss(const NamedTensors& inputs, const NamedTensors& outputs) const override;
  NamedTensors example(int64_t tokens) const override;
  std::map<std::string, Stack*> stacks() const override {
    return {{"encoder", encoder_.get()}, {"decoder", decoder_.get()}};
  }
  // A head tied to the target embedding is complete with it.
  std::vector<std::vector<std::string>> gradient_stages() const override {
    return {{"head."}, {"decoder.", "target_embedding"}};
  }

  // source [B, S] → a state with the encoded source, ready for the first target tokens.
  State encode(const Tensor& source, const Scope& scope);
  // The next target tokens [B, T] → logits [B, T, V]; advances `state`. Whole, in pieces or token
  // by token, the result is the same.
  Tensor decode(const Tensor& target, State& state, const Scope& scope);
  // The same in two steps: the input of the head [B, T, D], and its logits.
  Tensor decode_rows(const Tensor& target, State& state, const Scope& scope);
  Tensor head(const Tensor& rows, const Scope& scope) const;

  // For training: the summed loss of the same pass against labels [B, T], without materializing the
  // logits.
  LossSum loss_of_target(const Tensor& target, const Tensor& labels, State& state,
                         double smoothing = 0.0);

  // For other ways to run it (infer/compiled_translation_model.h): the input of the first level for
  // source tokens [B, S], or for one target token per row [B, 1] at position `first`; the stacks;
  // the head.
  Tensor embed_source(const Tensor& tokens) const {
    return embed(source_embedding_, tokens, 0, Scope());
  }
  Tensor embed_target(const Tensor& tokens, int64_t first) const {
    return embed(target_embedding_, tokens, first, Scope());
  }
  const Stack& encoder() const { return *encoder_; }
  const Stack& decoder() const { return *decoder_; }
  nn::LinearMap head_map() const;

  const EncoderDecoderConfig& config() const { return config_; }

 private:
  std::shared_ptr<Stack> make_stack(bool decoder) const;
  Tensor embed(const Tensor& table, const Tensor& tokens, int64_t first, const Scope& scope) const;

  EncoderDecoderConfig config_;
  Tensor source_embedding_;  // [Vs, D]
  Tensor target_embedding_;  // [Vt, D]
  std::shared_ptr<Stack> encoder_;
  std::shared_ptr<Stack> decoder_;
  std::shared_ptr<nn::Linear> head_;  // null when tied
};

}  // namespace rondo
