// Confidence intervals and a paired test for corpus scores by bootstrap resampling (Koehn, 2004),
// computed as in sacreBLEU.
//
// A resample draws n of the n sentences with replacement and scores the sum of their statistics.
// Draws are those of numpy's default_rng(seed).choice, as in sacreBLEU: the same signature gives
// the same interval, digit for digit, and two systems see the same sentences. (sacreBLEU sums in
// single precision, which is exact up to 16 million n-grams; our sums are always exact.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rondo/metrics/numpy_random.h"

namespace rondo {

struct BootstrapOptions {
  int64_t samples = 1000;
  uint64_t seed = 12345;
};

// The 95 % interval of the resampled scores: drops samples / 40 (rounded down) at either end.
struct Interval {
  double mean = 0;  // of the resampled scores
  double low = 0;
  double high = 0;

  double half_width() const { return 0.5 * (high - low); }  // sacreBLEU's "±"
};

struct PairedBootstrap {
  Interval system;
  Interval baseline;
  Interval difference;  // of system - baseline, per resample
  double p_value = 1;
};

// Successive resamples, as sentence indices below `sentences` (at least 1).
class BootstrapDraws {
 public:
  BootstrapDraws(size_t sentences, uint64_t seed);
  const std::vector<uint32_t>& next();  // the next resample

 private:
  NumpyRandom random_;
  std::vector<uint32_t> draws_;
};

// For at least one score, in any order.
Interval interval_of(std::vector<double> scores);

// The probability of a difference as large as `observed` between equally good systems, as in
// sacreBLEU's paired bootstrap. With d_s = |system_s - baseline_s| over n resamples and their mean
// d:
//   p = (1 + #{s : d_s - d > |observed|}) / (n + 1)
// Systems that are equal in every resample have p = 1, where the formula (and sacreBLEU) would give
// 1 / (n + 1).
double paired_p_value(const std::vector<double>& system, const std::vector<double>& baseline,
                      double observed);

// "bs:1000|seed:12345", for signatures.
std::string bootstrap_signature(const BootstrapOptions& options);

// The score of every resample. Statistics must support += and score(sum) must return a number.
template <class Statistics, class Score>
std::vector<double> bootstrap_scores(const std::vector<Statistics>& sentences, const Score& score,
                                     const BootstrapOptions& options) {
  std::vector<double> scores;
  BootstrapDraws draws(sentences.size(), options.seed);
  for (int64_t sample = 0; sample < options.samples; ++sample) {
    Statistics sum;
    for (const uint32_t i : draws.next()) sum += sentences[i];
    scores.push_back(score(sum));
  }
  return scores;
}

template <class Statistics>
Statistics sum_of(const std::vector<Statistics>& sentences) {
  Statistics sum;
  for (const Statistics& sentence : sentences) sum += sentence;
  return sum;
}

template <class Statistics, class Score>
Interval bootstrap_interval(const std::vector<Statistics>& sentences, const Score& score,
                            const BootstrapOptions& options = {}) {
  return interval_of(bootstrap_scores(sentences, score, options));
}

// Both systems translated the same sentences.
template <class Statistics, class Score>
PairedBootstrap paired_bootstrap(const std::vector<Statistics>& system,
                                 const std::vector<Statistics>& baseline, const Score& score,
                                 const BootstrapOptions& options = {}) {
  const std::vector<double> ours = bootstrap_scores(system, score, options);
  const std::vector<double> theirs = bootstrap_scores(baseline, score, options);
  std::vector<double> differences;
  for (size_t s = 0; s < ours.size(); ++s) differences.push_back(ours[s] - theirs[s]);
  PairedBootstrap result;
  result.system = interval_of(ours);
  result.baseline = interval_of(theirs);
  result.difference = interval_of(differences);
  result.p_value = paired_p_value(ours, theirs, score(sum_of(system)) - score(sum_of(baseline)));
  return result;
}

}  // namespace rondo
