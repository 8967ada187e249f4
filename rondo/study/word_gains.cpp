// Splits tokens into words.
#include "rondo/study/word_gains.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "rondo/base/error.h"

namespace rondo::study {
namespace {

bool in_word(unsigned char byte) {
  return byte >= 0x80U || std::isalnum(byte) != 0 || byte == '\'';
}

}  // namespace

void GainBucket::add(double gain) {
  ++count;
  sum += gain;
  squares += gain * gain;
}

double GainBucket::error() const {
  if (count < 2) return 0;
  const auto n = static_cast<double>(count);
  const double variance = std::max(0.0, (squares - sum * sum / n) / (n - 1));
  return 1.96 * std::sqrt(variance / n);
}

GainBucket& bucket_of(std::vector<GainBucket>& buckets, int64_t number) {
  size_t k = 0;
  while (number >> (k + 1) > 0) ++k;
  while (buckets.size() <= k) {
    GainBucket next;
    next.first = buckets.empty() ? 0 : int64_t{1} << buckets.size();
    next.last = (int64_t{2} << buckets.size()) - 1;
    buckets.push_back(next);
  }
  return buckets[k];
}

const std::string& WordGains::bytes_of(int32_t token) {
  const auto found = bytes_.find(token);
  if (found != bytes_.end()) return found->second;
  return bytes_[token] = tokenizer_.decode({token});
}

void WordGains::end_word(int64_t place) {
  if (word_.empty()) return;
  const auto [seen, is_new] = last_.try_emplace(word_, place);
  if (is_new) {
    new_words_.add(bits_);
  } else {
    bucket_of(by_distance_, place - seen->second).add(bits_);
    seen->second = place;
  }
  WordGain& word = words_[word_];
  if (word.count == 0) word.word = word_;
  ++word.count;
  word.bits += bits_;
  word_.clear();
  bits_ = 0;
}

void WordGains::add(const std::vector<int32_t>& tokens, const std::vector<float>& gains) {
  RONDO_ASSERT(tokens.size() == gains.size());
  last_.clear();
  int64_t begun = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string& bytes = bytes_of(tokens[i]);
    const double each = static_cast<double>(gains[i]) / std::max<double>(1, bytes.size());
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      if (!in_word(byte)) {
        end_word(begun);
        continue;
      }
      if (word_.empty()) begun = static_cast<int64_t>(i);
      word_ += static_cast<char>(std::tolower(byte));
      bits_ += each;
    }
  }
  end_word(begun);
}

std::vector<WordGain> WordGains::best(int64_t count) const {
  std::vector<WordGain> all;
  for (const auto& [text, word] : words_) all.push_back(word);
  const auto better = [](const WordGain& a, const WordGain& b) {
    return a.bits != b.bits ? a.bits > b.bits : a.word < b.word;
  };
  const auto kept = std::min(all.size(), static_cast<size_t>(count));
  std::partial_sort(all.begin(), all.begin() + static_cast<int64_t>(kept), all.end(), better);
  all.resize(kept);
  return all;
}

}  // namespace rondo::study
