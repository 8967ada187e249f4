// Gains of tokens aggregated by word: a word's gain is that of its bytes, however it is tokenized.
#pragma once

#include <unordered_map>

#include "rondo/data/tokenizer.h"
#include "rondo/study/state_use.h"

namespace rondo::study {

// Words are runs of ASCII letters, digits and apostrophes, and of all non-ASCII bytes; ASCII case
// is ignored.
class WordGains {
 public:
  explicit WordGains(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // A document: its tokens, and the gain of each in bits (the first token has none).
  void add(const std::vector<int32_t>& tokens, const std::vector<float>& gains);

  const std::vector<GainBucket>& by_distance() const { return by_distance_; }
  const GainBucket& new_words() const { return new_words_; }
  // The `count` words with the highest total gain.
  std::vector<WordGain> best(int64_t count) const;

 private:
  void end_word(int64_t place);
  const std::string& bytes_of(int32_t token);

  const Tokenizer& tokenizer_;
  std::unordered_map<int32_t, std::string> bytes_;
  std::unordered_map<std::string, WordGain> words_;
  std::unordered_map<std::string, int64_t> last_;  // token at which a word last started
  std::string word_;
  double bits_ = 0;
  std::vector<GainBucket> by_distance_;
  GainBucket new_words_;
};

// The bucket of `number` among those by powers of two, created if missing.
GainBucket& bucket_of(std::vector<GainBucket>& buckets, int64_t number);

}  // namespace rondo::study
