// Translates lines of text: tokenization, batches of similar length, beam search, detokenization,
// in input order. A translator is immutable and may be called from any thread; callers take turns
// at the runtime's threads.
#pragma once

#include "rondo/data/pair_tokenizers.h"
#include "rondo/infer/beam_search.h"

namespace rondo {

struct TranslatorOptions {
  BeamOptions beam;
  int64_t batch = 32;               // sentences translated together
  int64_t max_source_tokens = 512;  // longer lines are truncated
};

struct Translation {
  struct Candidate {
    std::string text;
    std::vector<int32_t> tokens;  // without special tokens
    double log_probability = 0;
    double score = 0;
  };
  std::vector<Candidate> candidates;  // best first; one with empty text for a blank line
  int64_t source_tokens = 0;
  int64_t unknown = 0;  // out-of-vocabulary source tokens
  bool cut = false;     // the line was longer than max_source_tokens
};

class Translator {
 public:
  // Throws Error{bad_input} for invalid options, and for tokenizers with more tokens than the
  // model.
  Translator(std::shared_ptr<const CompiledTranslationModel> model, PairTokenizers tokenizers,
             const TranslatorOptions& options);

  // Translations of `lines`, in order. Each is independent of the other lines.
  std::vector<Translation> translate(const std::vector<std::string>& lines) const;

  const SearchTokens& special_tokens() const { return special_tokens_; }
  const TranslatorOptions& options() const { return options_; }
  const PairTokenizers& tokenizers() const { return tokenizers_; }

 private:
  void translate_batch(const std::vector<std::vector<int32_t>>& sources,
                       const std::vector<size_t>& which, std::vector<Translation>& results) const;

  std::shared_ptr<const CompiledTranslationModel> model_;
  PairTokenizers tokenizers_;
  TranslatorOptions options_;
  SearchTokens special_tokens_;
};

}  // namespace rondo
