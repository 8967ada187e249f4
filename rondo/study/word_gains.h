// Gains of tokens gathered by words: a word's gain is that of its bytes, however tokens cut it.
#pragma once

#include <unordered_map>

#include "rondo/data/tokenizer.h"
#include "rondo/study/state_use.h"

namespace rondo::study {

// Words are runs of ASCII letters, digits and apostrophes, and of all bytes beyond ASCII; letters
// count the same in both cases.
class WordGains {
 public:
  explicit WordGains(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // A document: its tokens, and the gain of each in bits (nothing is known of the first).
  void add(const std::vector<int32_t>& tokens, const std::vector<float>& gains);

  const std::vector<GainBucket>& by_distance() const { return by_distance_; }
  const GainBucket& new_words() const { return new_words_; }
  // The `count` words with the highest sums.
  std::vector<WordGain> best(int64_t count) const;

 private:
  void end_word(int64_t place);
  const std::string& bytes_of(int32_t token);

  const Tokenizer& tokenizer_;
  std::unordered_map<int32_t, std::string> bytes_;
  std::unordered_map<std::string, WordGain> words_;
  std::unordered_map<std::string, int64_t> last_;  // token where a word was last begun
  std::string word_;
  double bits_ = 0;
  std::vector<GainBucket> by_distance_;
  GainBucket new_words_;
};

// The bucket of `number` among those by powers of two, made if it is not there.
GainBucket& bucket_of(std::vector<GainBucket>& buckets, int64_t number);

}  // namespace rondo::study
