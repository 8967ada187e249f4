// Counting the n-grams that two texts share, exactly: no n-gram is ever taken for another. Internal
// to BLEU and chrF.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace rondo {

using TokenIds = std::vector<uint32_t>;

// Numbers for words, equal for equal words: 0, 1, 2, ... in order of appearance. The words must
// outlive it.
class WordNumbers {
 public:
  explicit WordNumbers(size_t most_words);
  TokenIds of(const std::vector<std::string_view>& words);

 private:
  std::vector<uint32_t> slots_;  // of an open hash table: number + 1, 0 = free
  std::vector<std::string_view> words_;
};

// The matches of a hypothesis with its references, order by order. An n-gram matches as often as it
// occurs, but no more often than in the one reference that has it most often.
//
// An n-gram is known as (the (n-1)-gram that begins it, its last token), and only those of the
// order at hand are kept, so time and memory are O(tokens) per order. N-grams whose beginning did
// not match are not looked at again.
class NgramMatcher {
 public:
  // Both must outlive it. Together the references have less than 2^30 tokens.
  NgramMatcher(const TokenIds& hypothesis, const std::vector<const TokenIds*>& references);

  // Matching 1-grams at the first call, 2-grams at the second, and so on.
  int64_t next();

 private:
  struct Slot {
    uint64_t ngram = 0;      // its beginning and its last token
    uint32_t reference = 0;  // the last one it was seen in, counting from 1; 0 = the slot is free
    uint32_t current = 0;    // how often there
    uint32_t most = 0;       // how often in the reference that has it most often
    uint32_t taken = 0;      // how often in the hypothesis
  };
  struct Text {
    const TokenIds* tokens;
    std::vector<uint32_t>
        begins;  // per token: the slot of the n-gram that begins there, or kNoNgram
  };

  uint32_t slot_of(uint64_t ngram) const;
  void count_references();
  int64_t count_hypothesis();
  void forget_unmatched();

  Text hypothesis_;
  std::vector<Text> references_;
  std::vector<Slot> slots_;
  size_t order_ = 0;
  bool matched_ = true;  // something did at the order before
};

}  // namespace rondo
