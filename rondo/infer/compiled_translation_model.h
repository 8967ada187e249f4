// A translation model ready for use: linear maps packed once in a format with as many bits as
// wanted, level signals folded into weights of each level's own. Made from a copy that shares the
// model's tensors, so that the model itself stays as it is. Immutable, and shared by any number of
// threads.
#pragma once

#include "rondo/model/encoder_decoder.h"

namespace rondo {

// How the low-rank signals of a level are played. Folded takes the fewest operations and, for every
// level, memory for maps of its own.
enum class SignalMode { folded, apart };

class CompiledTranslationModel {
 public:
  explicit CompiledTranslationModel(const EncoderDecoder& model,
                                    nn::WeightFormat format = nn::WeightFormat::fp32,
                                    SignalMode signals = SignalMode::folded);

  const EncoderDecoderConfig& config() const { return copy_->config(); }
  nn::WeightFormat format() const { return format_; }

  // As EncoderDecoder's; all without gradients.
  State encode(const Tensor& source) const { return copy_->encode(source, Scope()); }
  Tensor decode_beams(const Tensor& target, State& state, BeamCache& beams) const {
    return copy_->decode_beams(target, state, beams);
  }
  Tensor head(const Tensor& rows) const { return copy_->head(rows, Scope()); }
  bool head_is_rounded() const { return copy_->head_is_rounded(); }
  Tensor exact_logits(const Tensor& rows, const Tensor& tokens) const {
    return copy_->exact_logits(rows, tokens);
  }

 private:
  nn::WeightFormat format_;
  std::shared_ptr<EncoderDecoder> copy_;
};

}  // namespace rondo
