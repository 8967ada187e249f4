// Exact counting of the n-grams that two texts share, without hash collisions. Internal to BLEU and
// chrF.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace rondo {

using TokenIds = std::vector<uint32_t>;

// Maps words to the numbers 0, 1, 2, ... in order of first appearance. The words must outlive it.
class WordNumbers {
 public:
  explicit WordNumbers(size_t most_words);
  TokenIds of(const std::vector<std::string_view>& words);

 private:
  std::vector<uint32_t> slots_;  // open-addressing hash table: number + 1, 0 = free
  std::vector<std::string_view> words_;
};

// Matches of a hypothesis with its references, order by order. The matches of an n-gram are clipped
// to its highest count in any one reference.
//
// An n-gram is identified by its leading (n-1)-gram and its last token. Only those of the current
// order are kept, so time and memory are O(tokens) per order. N-grams whose (n-1)-gram did not
// match are skipped.
class NgramMatcher {
 public:
  // Both must outlive it. The references have fewer than 2^30 tokens in total.
  NgramMatcher(const TokenIds& hypothesis, const std::vector<const TokenIds*>& references);

  // The number of matching 1-grams on the first call, 2-grams on the second, and so on.
  int64_t next();

 private:
  struct Slot {
    uint64_t ngram = 0;      // its (n-1)-gram and its last token
    uint32_t reference = 0;  // the last one it occurred in, from 1; 0 = free slot
    uint32_t current = 0;    // count in that reference
    uint32_t most = 0;       // highest count in any reference
    uint32_t taken = 0;      // count in the hypothesis
  };
  struct Text {
    const TokenIds* tokens;
    std::vector<uint32_t> begins;  // per token: slot of the n-gram that starts there, or kNoNgram
  };

  uint32_t slot_of(uint64_t ngram) const;
  void count_references();
  int64_t count_hypothesis();
  void forget_unmatched();

  Text hypothesis_;
  std::vector<Text> references_;
  std::vector<Slot> slots_;
  size_t order_ = 0;
  bool matched_ = true;  // the previous order had matches
};

}  // namespace rondo
