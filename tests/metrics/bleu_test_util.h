// Shared by the tests of BLEU, chrF and the bootstrap: cases computed by another program, generated
// corpora, and counting n-grams by the slow, obvious method.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/base/random.h"
#include "tests/base/base_test_util.h"

namespace rondo::testing {

using Lines = std::vector<std::string>;
using Ngrams = std::map<Lines, int64_t>;

// tests/fixtures/bleu_cases.json; its "about" names the origin of the numbers.
inline const nlohmann::json& worked_cases() {
  static const nlohmann::json cases =
      nlohmann::json::parse(slurp(RONDO_FIXTURES "/bleu_cases.json")).at("cases");
  return cases;
}

// The i-th line of every reference.
inline std::vector<std::string_view> references_of(const std::vector<Lines>& references, size_t i) {
  std::vector<std::string_view> lines;
  for (const Lines& reference : references) lines.emplace_back(reference[i]);
  return lines;
}

// The sum of `count(hypothesis, references)` over the sentences of a corpus.
template <class Count>
auto corpus_sum(const Lines& hypotheses, const std::vector<Lines>& references, const Count& count) {
  decltype(count(std::string_view(), std::vector<std::string_view>())) sum;
  for (size_t i = 0; i < hypotheses.size(); ++i)
    sum += count(hypotheses[i], references_of(references, i));
  return sum;
}

inline Ngrams plain_ngrams(const Lines& tokens, size_t order) {
  Ngrams ngrams;
  for (size_t i = 0; i + order <= tokens.size(); ++i) {
    ++ngrams[Lines(tokens.begin() + static_cast<int64_t>(i),
                   tokens.begin() + static_cast<int64_t>(i + order))];
  }
  return ngrams;
}

inline int64_t plain_matches(const Lines& hypothesis, const std::vector<Lines>& references,
                             size_t order) {
  int64_t matches = 0;
  for (const auto& [ngram, count] : plain_ngrams(hypothesis, order)) {
    int64_t most = 0;
    for (const Lines& reference : references) {
      const Ngrams ngrams = plain_ngrams(reference, order);
      const auto found = ngrams.find(ngram);
      if (found != ngrams.end()) most = std::max(most, found->second);
    }
    matches += std::min(count, most);
  }
  return matches;
}

// Sentences of up to `longest` words "0" .. "vocabulary - 1".
inline Lines made_up_words(CounterRandom& random, uint64_t longest, uint64_t vocabulary) {
  Lines words(random.below(longest + 1));
  for (std::string& word : words) word = std::to_string(random.below(vocabulary));
  return words;
}

inline std::string joined(const Lines& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace rondo::testing
