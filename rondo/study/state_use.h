// The contribution of a language model's recurrent states to each token of a text: its
// log-probability with them minus that with zeros in their place; by position, by distance to the
// last occurrence of the same word, by word. Also the states themselves along the document: gates,
// norms, effective rank and similarity, which reveal a collapse (Block-Recurrent Transformer,
// Section 3.3).
#pragma once

#include "rondo/data/documents.h"
#include "rondo/model/language_model.h"
#include "rondo/study/report.h"

namespace rondo::study {

// Gains of tokens, in bits, bucketed by powers of two of a number: [first, last].
struct GainBucket {
  int64_t first = 0, last = 0;
  int64_t count = 0;
  double sum = 0, squares = 0;

  void add(double gain);
  double mean() const { return sum / static_cast<double>(count); }
  double error() const;  // half-width of the 95 % interval of the mean
};

struct WordGain {
  std::string word;
  int64_t count = 0;
  double bits = 0;  // summed over its occurrences
};

// A piece of the text, in whole characters, and its gain from the states.
struct ShadedText {
  std::string text;
  double bits = 0;
};

// The states of one level at a position in the first document.
struct StateSample {
  int64_t position = 0;
  double norm = 0;        // mean norm of the vectors
  double rank = 0;        // effective: exp of the entropy of the normalized singular values
  double similarity = 0;  // mean pairwise cosine of the vectors
};

struct StateUse {
  std::string name;
  int64_t tokens = 0;
  double bits_with = 0, bits_without = 0;  // per token
  std::vector<GainBucket> by_position;
  std::vector<GainBucket> by_distance;  // repeated words, by tokens since; gain of whole words
  GainBucket new_words;                 // not seen before in the document
  std::vector<WordGain> words;          // in descending order of gain
  std::vector<ShadedText> excerpt;      // of the first document
  int64_t excerpt_from = 0;             // its first token
  std::map<int64_t, std::vector<StateSample>> states;                   // by level, from 1
  std::map<std::string, std::vector<std::pair<double, double>>> gates;  // mean by position
  double seconds = 0;
};

struct StateUseOptions {
  int64_t rows = 8;        // documents processed in parallel
  int64_t excerpt = 1500;  // tokens shown
  int64_t words = 30;      // listed
};

// Error{bad_input} if the model has no recurrent states or the documents have nothing to score.
StateUse state_use(LanguageModel& model, const Documents& documents,
                   const std::shared_ptr<const Tokenizer>& tokenizer,
                   const StateUseOptions& options);

StudyReport state_report(const std::vector<StateUse>& found);

}  // namespace rondo::study
