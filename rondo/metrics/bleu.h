// BLEU (Papineni et al., 2002), numerically identical to sacreBLEU 2.x: the same tokens, counts,
// smoothing and brevity penalty, so scores are comparable with published ones of the same
// signature.
//
//   BleuStatistics sum;
//   for (each sentence) sum += bleu_statistics(hypothesis, {reference}, options);
//   bleu_score(sum, options).verbose()
//
// Score of a corpus with clipped matches m_n of t_n n-grams, c tokens in the hypotheses and r in
// the references (per sentence, the reference length closest to the hypothesis; ties go to the
// shorter):
//   BLEU = 100 BP (p_1 p_2 p_3 p_4)^(1/4),  p_n = m_n / t_n,  BP = 1 if c >= r else exp(1 - r / c)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

constexpr size_t kBleuOrder = 4;

struct BleuOptions {
  // 13a: as mteval-v13a.pl, for Western text. char: every non-space character. none: split at white
  // space, for text that is already tokenized.
  std::string tokenize = "13a";
  // The value of p_n if nothing matches. exp: 1 / (2^k t_n) at the k-th such order. floor:
  // value / t_n. add-k: adds value to m_n and t_n for n > 1. none: 0, which makes the score 0.
  std::string smooth = "exp";
  std::optional<double> smooth_value;  // of floor (0.1) and add-k (1)
  bool effective_order = false;        // use only orders that have n-grams: for single sentences
  bool lowercase = false;
};

// Sufficient statistics of a set of sentences; additive over sets.
struct BleuStatistics {
  std::array<int64_t, kBleuOrder> correct{};
  std::array<int64_t, kBleuOrder> total{};
  int64_t hypothesis_length = 0;
  int64_t reference_length = 0;

  BleuStatistics& operator+=(const BleuStatistics& other);
};

struct BleuScore {
  double score = 0;  // 0 .. 100
  std::array<double, kBleuOrder> precisions{};
  double brevity_penalty = 0;
  int64_t hypothesis_length = 0;
  int64_t reference_length = 0;

  double ratio() const;  // of the lengths; 0 if the reference length is 0
  // "65.1/39.9/26.5/17.8 (BP = 1.000 ratio = 1.006 hyp_len = 12999 ref_len = 12920)"
  std::string details() const;
  std::string verbose() const;  // "BLEU = 33.12 " and the details
};

// Throws Error{bad_input} for unknown names. The functions below expect valid options.
void check_bleu_options(const BleuOptions& options);

// Statistics of one sentence. Needs at least one reference; an empty one counts as a reference of
// length 0. Ignores trailing white space.
BleuStatistics bleu_statistics(std::string_view hypothesis,
                               const std::vector<std::string_view>& references,
                               const BleuOptions& options);

BleuScore bleu_score(const BleuStatistics& statistics, const BleuOptions& options);

// "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:rondo-0.1.0": everything a score
// depends on, with sacreBLEU's names. Includes `sampling` ("bs:1000|seed:12345") if given.
std::string bleu_signature(const BleuOptions& options, size_t references,
                           std::string_view sampling = {});

// The tokens of a line, separated by single spaces.
std::string tokenize_13a(std::string_view line);

}  // namespace rondo
