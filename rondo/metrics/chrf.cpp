// chrF, from characters and words to the score.
#include "rondo/metrics/chrf.h"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/base/require.h"
#include "rondo/base/version.h"
#include "rondo/metrics/bleu_ngrams.h"
#include "rondo/metrics/bleu_text.h"

namespace rondo {
namespace {

constexpr double kChrfEpsilon = 1e-16;

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

// Words, with one ASCII punctuation mark at the end, or otherwise at the start, split off: "(hi)"
// becomes "(hi", ")". Single-character words stay whole; of these, only ASCII ones could be
// punctuation.
std::vector<std::string_view> chrf_words(std::string_view line) {
  std::vector<std::string_view> words;
  for (const std::string_view word : words_of(line)) {
    const size_t last = word.size() - 1;
    if (last > 0 && is_punctuation(word[last])) {
      words.push_back(word.substr(0, last));
      words.push_back(word.substr(last));
    } else if (last > 0 && is_punctuation(word[0])) {
      words.push_back(word.substr(0, 1));
      words.push_back(word.substr(1));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

// A line as chrF sees it.
struct ChrfText {
  std::string text;  // the words point into it, so it must not move
  TokenIds characters;
  std::vector<std::string_view> words;

  ChrfText(std::string_view line, const ChrfOptions& options)
      : text(options.lowercase ? lower_case(line) : line) {
    require(line.size() <= kMaxSegmentBytes, "chrF: expected lines of at most {} bytes, got {}",
            kMaxSegmentBytes, line.size());
    characters = options.whitespace ? characters_of(text) : dense_characters_of(text);
    if (options.word_order > 0) words = chrf_words(text);
  }
  ChrfText(const ChrfText&) = delete;
  ChrfText& operator=(const ChrfText&) = delete;
};

void count_orders(const TokenIds& hypothesis, const TokenIds& reference,
                  ChrfStatistics::Order* orders, size_t count) {
  NgramMatcher matcher(hypothesis, {&reference});
  const auto ngrams = [](const TokenIds& tokens, size_t shorter) {
    return std::max<int64_t>(0,
                             static_cast<int64_t>(tokens.size()) - static_cast<int64_t>(shorter));
  };
  for (size_t i = 0; i < count; ++i) {
    orders[i].reference = ngrams(reference, i);
    orders[i].hypothesis = orders[i].reference > 0 ? ngrams(hypothesis, i) : 0;
    orders[i].matches = matcher.next();
  }
}

ChrfStatistics compare_texts(const ChrfText& hypothesis, const ChrfText& reference,
                             const ChrfOptions& options) {
  ChrfStatistics statistics;
  ChrfStatistics::Order* orders = statistics.orders.data();
  count_orders(hypothesis.characters, reference.characters, orders, options.character_order);
  if (options.word_order > 0) {
    WordNumbers known(hypothesis.words.size() + reference.words.size());
    const TokenIds words = known.of(hypothesis.words);
    count_orders(words, known.of(reference.words), orders + options.character_order,
                 options.word_order);
  }
  return statistics;
}

}  // namespace

ChrfStatistics& ChrfStatistics::operator+=(const ChrfStatistics& other) {
  for (size_t i = 0; i < orders.size(); ++i) {
    orders[i].hypothesis += other.orders[i].hypothesis;
    orders[i].reference += other.orders[i].reference;
    orders[i].matches += other.orders[i].matches;
  }
  return *this;
}

ChrfStatistics chrf_statistics(std::string_view hypothesis,
                               const std::vector<std::string_view>& references,
                               const ChrfOptions& options) {
  require(!references.empty(), "chrF: no references given");
  require(options.character_order >= 1 && options.character_order <= kMaxChrfCharacters,
          "chrF: expected a character order from 1 to {}, got {}", kMaxChrfCharacters,
          options.character_order);
  require(options.word_order <= kMaxChrfWords, "chrF: expected a word order from 0 to {}, got {}",
          kMaxChrfWords, options.word_order);
  const ChrfText text(hypothesis, options);
  ChrfStatistics best;
  double best_score = -1;
  for (const std::string_view reference : references) {
    const ChrfStatistics statistics = compare_texts(text, ChrfText(reference, options), options);
    const double score = chrf_score(statistics, options);
    if (score > best_score) {
      best_score = score;
      best = statistics;
    }
  }
  return best;
}

// Operations in sacreBLEU's order, so that even the last digit agrees.
double chrf_score(const ChrfStatistics& statistics, const ChrfOptions& options) {
  const auto factor = static_cast<double>(options.beta * options.beta);
  const size_t orders = options.character_order + options.word_order;
  double sum = 0;
  double precisions = 0;
  double recalls = 0;
  double effective = 0;
  for (size_t i = 0; i < orders; ++i) {
    const auto hypothesis = static_cast<double>(statistics.orders[i].hypothesis);
    const auto reference = static_cast<double>(statistics.orders[i].reference);
    const auto matches = static_cast<double>(statistics.orders[i].matches);
    const double precision = hypothesis > 0 ? matches / hypothesis : kChrfEpsilon;
    const double recall = reference > 0 ? matches / reference : kChrfEpsilon;
    const double below = factor * precision + recall;
    sum += below > 0 ? (1 + factor) * precision * recall / below : kChrfEpsilon;
    if (hypothesis > 0 && reference > 0) {
      precisions += precision;
      recalls += recall;
      effective += 1;
    }
  }
  if (options.epsilon_smoothing) return 100 * sum / static_cast<double>(orders);
  if (precisions + recalls == 0) return 0;
  precisions /= effective;
  recalls /= effective;
  return 100 * ((1 + factor) * precisions * recalls / (factor * precisions + recalls));
}

std::string chrf_name(const ChrfOptions& options) {
  return fmt::format("chrF{}{}", options.beta, std::string(options.word_order, '+'));
}

std::string chrf_signature(const ChrfOptions& options, size_t references,
                           std::string_view sampling) {
  return fmt::format("{}|nrefs:{}{}{}|case:{}|eff:{}|nc:{}|nw:{}|space:{}|version:rondo-{}",
                     chrf_name(options), references, sampling.empty() ? "" : "|", sampling,
                     options.lowercase ? "lc" : "mixed", options.epsilon_smoothing ? "no" : "yes",
                     options.character_order, options.word_order, options.whitespace ? "yes" : "no",
                     kVersion);
}

}  // namespace rondo
