// A translation model compiled for inference: weights packed once in the chosen format, level
// signals folded into per-level weights. A CompiledSequenceStack encodes sentences and a
// CompiledStack decodes tokens; with reference kernels, the network's own modules do both in fp32.
// The model itself is not modified. Immutable and shared by any number of threads.
#pragma once

#include "rondo/infer/step_sharing.h"
#include "rondo/model/encoder_decoder.h"

namespace rondo {

// How the low-rank signals of a level are applied. Folded needs the fewest operations, but memory
// for separate maps at every level.
enum class SignalMode { folded, apart };

class CompiledTranslationModel {
 public:
  explicit CompiledTranslationModel(const EncoderDecoder& model,
                                    nn::WeightFormat format = nn::WeightFormat::fp32,
                                    SignalMode signals = SignalMode::folded);

  const EncoderDecoderConfig& config() const { return copy_->config(); }

  // Buffers of a search.
  struct Workspace {
    SequenceWorkspace encoder;
    StepParts parts;
    nn::RowBuffer output, logits;  // [rows, D] and [rows, V] after step()
  };
  // Encodes source [B, S] (padded) → for each sentence, a row with an empty translation. Copies of
  // a row (RowPast::clone) share what they have in common.
  std::vector<RowPast> encode(const Tensor& source, kernels::Team& team,
                              Workspace& workspace) const;

  // Feeds tokens[i] to rows[i]; all rows must be at the same position. A row's results do not
  // depend on the others.
  void step(const StepRows& rows, const std::vector<int64_t>& tokens, kernels::Team& team,
            Workspace& workspace) const;

  // With reduced-precision weights: the logits of tokens[i][·] for row i of `output` by the head's
  // original weights, since the best few tokens are often close. [rows, K] each.
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
