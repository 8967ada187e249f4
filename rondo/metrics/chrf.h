// chrF (Popović, 2015) and chrF++ (2017), numerically identical to sacreBLEU 2.x.
//
// For character orders 1 .. 6 (without white space) and word orders 1 .. word_order, with h n-grams
// in the hypotheses, r in the references and m matches: precision m / h, recall m / r. Averaged
// over the orders for which both sides have n-grams,
//   chrF = 100 (1 + beta^2) P R / (beta^2 P + R)
// With several references, a sentence uses the one with its best score; ties go to the first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

constexpr size_t kMaxChrfCharacters = 6;
constexpr size_t kMaxChrfWords = 2;

struct ChrfOptions {
  size_t character_order = 6;  // 1 .. kMaxChrfCharacters
  size_t word_order = 0;       // 0 .. kMaxChrfWords; 2 is chrF++
  int64_t beta = 2;            // recall counts beta times as much as precision
  bool lowercase = false;
  bool whitespace = false;  // include white space as characters
  // As in chrF++.py and NLTK: the mean of per-order F-scores, where an order that a side lacks
  // counts 1e-16.
  bool epsilon_smoothing = false;
};

// Sufficient statistics of a set of sentences, per order, characters first; additive over sets.
struct ChrfStatistics {
  struct Order {
    int64_t hypothesis = 0;  // n-grams; 0 where the sentence's reference has none
    int64_t reference = 0;
    int64_t matches = 0;
  };
  std::array<Order, kMaxChrfCharacters + kMaxChrfWords> orders{};

  ChrfStatistics& operator+=(const ChrfStatistics& other);
};

// Statistics of one sentence; needs at least one reference.
ChrfStatistics chrf_statistics(std::string_view hypothesis,
                               const std::vector<std::string_view>& references,
                               const ChrfOptions& options);

double chrf_score(const ChrfStatistics& statistics, const ChrfOptions& options);  // 0 .. 100

// "chrF2" for beta 2, "chrF2++" for word order 2.
std::string chrf_name(const ChrfOptions& options);

// "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:rondo-0.1.0"; see bleu_signature().
std::string chrf_signature(const ChrfOptions& options, size_t references,
                           std::string_view sampling = {});

}  // namespace rondo
