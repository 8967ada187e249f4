// From lines of text to their translations: tokens, batches of similar length, beam search, text
// again, in the order given.
#pragma once

#include "rondo/decode/beam_search.h"
#include "rondo/train/translation_task.h"

namespace rondo {

// How the low-rank signals of a level are played.
enum class SignalMode { fastest, folded, apart };

struct TranslatorOptions {
  BeamOptions beam;
  int64_t batch = 32;               // sentences translated together
  int64_t max_source_tokens = 512;  // longer lines are cut
  nn::WeightFormat format = nn::WeightFormat::fp32;
  SignalMode signals = SignalMode::fastest;
};

struct Translation {
  struct Candidate {
    std::string text;
    std::vector<int32_t> tokens;  // without marks
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
  // Takes the model over: its weights are converted as the options say. With SignalMode::fastest
  // signals are folded; if weights stay fp32 and there is more than a batch to translate, both ways
  // are timed once on such a batch, encoder and decoder apart.
  Translator(std::shared_ptr<EncoderDecoder> model, PairTokenizers tokenizers,
             const TranslatorOptions& options);

  // Translations of `lines`, in order. The text of each does not depend on the others.
  std::vector<Translation> translate(const std::vector<std::string>& lines);

  struct Folding {
    bool possible = false;
    bool encoder = false;
    bool decoder = false;
  };
  const Folding& folding() const { return folding_; }
  const BeamMarks& marks() const { return marks_; }
  const TranslatorOptions& options() const { return options_; }
  const PairTokenizers& tokenizers() const { return tokenizers_; }

 private:
  void time_signals();
  double time_encoder(bool folded);
  double time_decoder(bool folded);
  void translate_batch(const std::vector<std::vector<int32_t>>& sources,
                       const std::vector<size_t>& which, std::vector<Translation>& results);

  std::shared_ptr<EncoderDecoder> model_;
  PairTokenizers tokenizers_;
  TranslatorOptions options_;
  BeamMarks marks_;
  Folding folding_;
  bool to_be_timed_ = false;
};

}  // namespace rondo
