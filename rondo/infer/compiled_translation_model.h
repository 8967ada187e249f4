// A translation model ready for use: weights packed once in a format with as many bits as wanted,
// level signals folded into weights of each level's own. Sentences are encoded by a
// CompiledSequenceStack, tokens decoded by a CompiledStack; where the process uses reference
// kernels, both by the network's own modules in fp32. The model itself stays as it is. Immutable,
// and shared by any number of threads.
#pragma once

#include "rondo/infer/step_sharing.h"
#include "rondo/model/encoder_decoder.h"

namespace rondo {

// How the low-rank signals of a level are applied. Folded takes the fewest operations and, for
// every level, memory for maps of its own.
enum class SignalMode { folded, apart };

class CompiledTranslationModel {
 public:
  explicit CompiledTranslationModel(const EncoderDecoder& model,
                                    nn::WeightFormat format = nn::WeightFormat::fp32,
                                    SignalMode signals = SignalMode::folded);

  const EncoderDecoderConfig& config() const { return copy_->config(); }

  // What a search needs besides weights.
  struct Workspace {
    SequenceWorkspace encoder;
    StepParts parts;
    nn::RowBuffer output, logits;  // [rows, D] and [rows, V] after step()
  };
  // Encodes source [B, S] (padded) → for each sentence a row that has read nothing of its
  // translation. Copies of a row (RowPast::clone) share what they have in common.
  std::vector<RowPast> encode(const Tensor& source, kernels::Team& team,
                              Workspace& workspace) const;

  // Reads tokens[i] into rows[i], all as far in their sentences. A row's numbers do not depend on
  // the others'.
  void step(const StepRows& rows, const std::vector<int64_t>& tokens, kernels::Team& team,
            Workspace& workspace) const;

  // With weights in fewer bits, logits of tokens[i][·] alone after row i of `output` by the head's
  // weights as they were: the best few tokens are seldom far apart. [rows, K] each.
  bool head_is_rounded() const { return rounded_; }
  Tensor exact_logits(const nn::Rows& output, const Tensor& tokens) const;

 private:
  Tensor encode_memory(const Tensor& source, kernels::Team& team, Workspace& workspace) const;
  std::vector<RowPast> encode_plainly(const Tensor& source) const;
  void step_plainly(const StepRows& rows, const std::vector<int64_t>& tokens,
                    Workspace& workspace) const;

  bool rounded_;
  std::shared_ptr<EncoderDecoder> copy_;  // its modules, with the model's tensors; never changed
  nn::WeightPacker packer_;
  CompiledSequenceStack encoder_;
  CompiledStack decoder_;
  nn::CompiledLinear head_;
};

}  // namespace rondo
