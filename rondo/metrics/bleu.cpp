// BLEU, from tokens to the score.
#include "rondo/metrics/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/base/version.h"
#include "rondo/metrics/bleu_ngrams.h"
#include "rondo/metrics/bleu_text.h"

namespace rondo {
namespace {

constexpr double kLogOfZero = -9999999999.0;  // sacreBLEU's; exp of a quarter of it is 0

// The parameter of the smoothing method, if it has one.
std::optional<double> smoothing_value(const BleuOptions& options) {
  if (options.smooth == "floor") return options.smooth_value.value_or(0.1);
  if (options.smooth == "add-k") return options.smooth_value.value_or(1.0);
  return std::nullopt;
}

// The tokens of all lines as numbers, equal for equal tokens.
std::vector<TokenIds> number_tokens(const std::vector<std::string_view>& lines,
                                    const BleuOptions& options) {
  std::vector<TokenIds> numbers;
  numbers.reserve(lines.size());
  std::vector<std::string> texts;  // the words point into these, so they must not move
  texts.reserve(lines.size());
  std::vector<std::vector<std::string_view>> words;
  size_t count = 0;
  for (const std::string_view line : lines) {
    require(line.size() <= kMaxSegmentBytes, "BLEU: expected lines of at most {} bytes, got {}",
            kMaxSegmentBytes, line.size());
    std::string text = options.lowercase ? lower_case(line) : std::string(line);
    text.resize(strip_right(text).size());
    if (options.tokenize == "char") {
      numbers.push_back(dense_characters_of(text));
      continue;
    }
    if (options.tokenize == "13a") text = tokenize_13a(text);
    texts.push_back(std::move(text));
    words.push_back(words_of(texts.back()));
    count += words.back().size();
  }
  WordNumbers known(count);
  for (const auto& line : words) numbers.push_back(known.of(line));
  return numbers;
}

// The reference length closest to the hypothesis; ties go to the shorter.
int64_t nearest_length(int64_t hypothesis, const std::vector<const TokenIds*>& references) {
  int64_t nearest = -1;
  for (const TokenIds* reference : references) {
    const auto length = static_cast<int64_t>(reference->size());
    const int64_t farther = std::abs(length - hypothesis) - std::abs(nearest - hypothesis);
    if (nearest < 0 || farther < 0 || (farther == 0 && length < nearest)) nearest = length;
  }
  return nearest;
}

double brevity_penalty(int64_t hypothesis, int64_t reference) {
  if (hypothesis >= reference) return 1.0;
  if (hypothesis == 0) return 0.0;
  return std::exp(1.0 - static_cast<double>(reference) / static_cast<double>(hypothesis));
}

}  // namespace

BleuStatistics& BleuStatistics::operator+=(const BleuStatistics& other) {
  for (size_t n = 0; n < kBleuOrder; ++n) {
    correct[n] += other.correct[n];
    total[n] += other.total[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

double BleuScore::ratio() const {
  if (reference_length == 0) return 0;
  return static_cast<double>(hypothesis_length) / static_cast<double>(reference_length);
}

std::string BleuScore::details() const {
  return fmt::format(
      "{:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
      precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty, ratio(),
      hypothesis_length, reference_length);
}

std::string BleuScore::verbose() const { return fmt::format("BLEU = {:.2f} {}", score, details()); }

void check_bleu_options(const BleuOptions& options) {
  const auto check = [](const char* key, const std::string& got,
                        const std::vector<std::string>& expected) {
    if (std::find(expected.begin(), expected.end(), got) != expected.end()) return;
    throw Error(ExitCode::bad_input, fmt::format("BLEU: {}: expected one of {}, got '{}'", key,
                                                 join(expected, ", "), printable(got)));
  };
  check("tokenize", options.tokenize, {"13a", "none", "char"});
  check("smooth", options.smooth, {"exp", "none", "floor", "add-k"});
}

BleuStatistics bleu_statistics(std::string_view hypothesis,
                               const std::vector<std::string_view>& references,
                               const BleuOptions& options) {
  require(!references.empty(), "BLEU: no references given");
  std::vector<std::string_view> lines = {hypothesis};
  lines.insert(lines.end(), references.begin(), references.end());
  const std::vector<TokenIds> tokens = number_tokens(lines, options);
  std::vector<const TokenIds*> others;
  for (size_t i = 1; i < tokens.size(); ++i) others.push_back(&tokens[i]);

  BleuStatistics statistics;
  statistics.hypothesis_length = static_cast<int64_t>(tokens[0].size());
  statistics.reference_length = nearest_length(statistics.hypothesis_length, others);
  NgramMatcher matcher(tokens[0], others);
  for (size_t n = 0; n < kBleuOrder; ++n) {
    statistics.correct[n] = matcher.next();
    statistics.total[n] =
        std::max<int64_t>(0, statistics.hypothesis_length - static_cast<int64_t>(n));
  }
  return statistics;
}

BleuScore bleu_score(const BleuStatistics& statistics, const BleuOptions& options) {
  BleuScore result;
  result.hypothesis_length = statistics.hypothesis_length;
  result.reference_length = statistics.reference_length;
  result.brevity_penalty =
      brevity_penalty(statistics.hypothesis_length, statistics.reference_length);
  const auto& all = statistics.correct;
  if (std::all_of(all.begin(), all.end(), [](int64_t matches) { return matches == 0; }))
    return result;

  const double value = smoothing_value(options).value_or(0);
  double halvings = 1;  // exp: 2^k at the k-th order without matches
  size_t order = kBleuOrder;
  for (size_t n = 0; n < kBleuOrder; ++n) {
    const double added = options.smooth == "add-k" && n > 0 ? value : 0;
    const double correct = static_cast<double>(statistics.correct[n]) + added;
    const double total = static_cast<double>(statistics.total[n]) + added;
    if (total == 0) break;
    if (options.effective_order) order = n + 1;
    if (correct != 0) {
      result.precisions[n] = 100.0 * correct / total;
    } else if (options.smooth == "exp") {
      halvings *= 2;
      result.precisions[n] = 100.0 / (halvings * total);
    } else if (options.smooth == "floor") {
      result.precisions[n] = 100.0 * value / total;
    }
  }
  double logs = 0;
  for (size_t n = 0; n < order; ++n) {
    logs += result.precisions[n] == 0 ? kLogOfZero : std::log(result.precisions[n]);
  }
  result.score = result.brevity_penalty * std::exp(logs / static_cast<double>(order));
  return result;
}

std::string bleu_signature(const BleuOptions& options, size_t references,
                           std::string_view sampling) {
  const std::optional<double> value = smoothing_value(options);
  return fmt::format("BLEU|nrefs:{}{}{}|case:{}|eff:{}|tok:{}|smooth:{}{}|version:rondo-{}",
                     references, sampling.empty() ? "" : "|", sampling,
                     options.lowercase ? "lc" : "mixed", options.effective_order ? "yes" : "no",
                     options.tokenize, options.smooth, value ? fmt::format("[{:.2f}]", *value) : "",
                     kVersion);
}

}  // namespace rondo
