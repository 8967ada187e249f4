// N-gram matching with open-addressing hash tables.
#include "rondo/metrics/bleu_ngrams.h"

#include <algorithm>
#include <functional>

#include "rondo/base/error.h"

namespace rondo {
namespace {

constexpr uint32_t kNoNgram = UINT32_MAX;

// At least twice `entries`, a power of two.
size_t table_size(size_t entries) {
  size_t size = 16;
  while (size < 2 * entries) size *= 2;
  return size;
}

// Spreads neighboring keys over all 64 bits (the finalizer of SplitMix64).
uint64_t spread(uint64_t key) {
  key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9;
  key = (key ^ key >> 27) * 0x94D049BB133111EB;
  return key ^ key >> 31;
}

}  // namespace

WordNumbers::WordNumbers(size_t most_words) : slots_(table_size(most_words)) {
  words_.reserve(most_words);
}

TokenIds WordNumbers::of(const std::vector<std::string_view>& words) {
  RONDO_ASSERT(2 * (words_.size() + words.size()) <= slots_.size());
  TokenIds numbers;
  numbers.reserve(words.size());
  const size_t mask = slots_.size() - 1;
  for (const std::string_view word : words) {
    size_t at = std::hash<std::string_view>()(word) & mask;
    while (slots_[at] != 0 && words_[slots_[at] - 1] != word) at = (at + 1) & mask;
    if (slots_[at] == 0) {
      words_.push_back(word);
      slots_[at] = static_cast<uint32_t>(words_.size());
    }
    numbers.push_back(slots_[at] - 1);
  }
  return numbers;
}

NgramMatcher::NgramMatcher(const TokenIds& hypothesis,
                           const std::vector<const TokenIds*>& references)
    : hypothesis_{&hypothesis, std::vector<uint32_t>(hypothesis.size())} {
  size_t tokens = 0;
  for (const TokenIds* reference : references) {
    references_.push_back({reference, std::vector<uint32_t>(reference->size())});
    tokens += reference->size();
  }
  RONDO_ASSERT(tokens < size_t{1} << 30);
  slots_.resize(table_size(tokens));
}

int64_t NgramMatcher::next() {
  ++order_;
  if (!matched_) return 0;
  std::fill(slots_.begin(), slots_.end(), Slot());
  count_references();
  const int64_t matches = count_hypothesis();
  forget_unmatched();
  matched_ = matches > 0;
  return matches;
}

// The slot of `ngram`, or the free slot where it belongs.
uint32_t NgramMatcher::slot_of(uint64_t ngram) const {
  const size_t mask = slots_.size() - 1;
  size_t at = spread(ngram) & mask;
  while (slots_[at].reference != 0 && slots_[at].ngram != ngram) at = (at + 1) & mask;
  return static_cast<uint32_t>(at);
}

void NgramMatcher::count_references() {
  uint32_t number = 0;
  for (Text& text : references_) {
    ++number;
    const TokenIds& tokens = *text.tokens;
    for (size_t last = order_ - 1; last < tokens.size(); ++last) {
      uint32_t& begin = text.begins[last + 1 - order_];
      if (begin == kNoNgram) continue;
      const uint64_t ngram = uint64_t{begin} << 32 | tokens[last];
      begin = slot_of(ngram);
      Slot& slot = slots_[begin];
      if (slot.reference != number) {
        slot.ngram = ngram;
        slot.reference = number;
        slot.current = 0;
      }
      slot.most = std::max(slot.most, ++slot.current);
    }
  }
}

int64_t NgramMatcher::count_hypothesis() {
  int64_t matches = 0;
  const TokenIds& tokens = *hypothesis_.tokens;
  for (size_t last = order_ - 1; last < tokens.size(); ++last) {
    uint32_t& begin = hypothesis_.begins[last + 1 - order_];
    if (begin == kNoNgram) continue;
    begin = slot_of(uint64_t{begin} << 32 | tokens[last]);
    Slot& slot = slots_[begin];
    if (slot.reference == 0) {
      begin = kNoNgram;
    } else if (++slot.taken <= slot.most) {
      ++matches;
    }
  }
  return matches;
}

void NgramMatcher::forget_unmatched() {
  for (Text& text : references_) {
    const size_t tokens = text.tokens->size();
    for (size_t i = 0; i + order_ <= tokens; ++i) {
      uint32_t& begin = text.begins[i];
      if (begin != kNoNgram && slots_[begin].taken == 0) begin = kNoNgram;
    }
  }
}

}  // namespace rondo
