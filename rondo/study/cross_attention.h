// Which source tokens a translation attends to: the cross-attention of every decoder level for one
// sentence, translated by the network itself.
#pragma once

#include "rondo/infer/translator.h"
#include "rondo/model/encoder_decoder.h"
#include "rondo/study/report.h"

namespace rondo::study {

struct SentenceAttention {
  std::string source, target;              // texts
  std::vector<std::string> source_tokens;  // as text, the end token as "</s>"
  std::vector<std::string> target_tokens;  // those generated
  std::vector<Tensor> levels;              // [T, S] each, mean over heads
};

// Error{bad_input} if the line holds no text.
SentenceAttention sentence_attention(EncoderDecoder& model, const Translator& translator,
                                     const std::string& line);

StudyReport cross_attention_report(const std::vector<SentenceAttention>& found);

}  // namespace rondo::study
