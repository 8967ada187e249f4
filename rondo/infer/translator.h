// From lines of text to their translations: tokens, batches of similar length, beam search, text
// again, in the order given. A translator is immutable and may be called from any thread; callers
// take turns at the runtime's threads.
#pragma once

#include "rondo/data/pair_tokenizers.h"
#include "rondo/infer/beam_search.h"

namespace rondo {

struct TranslatorOptions {
  BeamOptions beam;
  int64_t batch = 32;               // sentences translated together
  int64_t max_source_tokens = 512;  // longer lines are cut
};

struct Translation {
  struct Candidate {
    std::string text;
    std::vector<int32_t> tokens;  // without special tokens
    double log_probability = 0;
    double score = 0;
  };
  std::vector<Candidate> candidates;  // best first; one empty text for a line without text
  int64_t source_tokens = 0;
  int64_t unknown = 0;  // source tokens that the vocabulary does not know
  bool cut = false;     // the line was longer than max_source_tokens
};

class Translator {
 public:
  // Error{bad_input} for options that mean nothing, and for tokenizers with more tokens than the
  // model.
  Translator(std::shared_ptr<const CompiledTranslationModel> model, PairTokenizers tokenizers,
             const TranslatorOptions& options);

  // Translations of `lines`, in order. The text of each does not depend on the others.
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
