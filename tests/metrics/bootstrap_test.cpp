// The bootstrap: the draws, intervals and p-values computed by hand, against resampling the text
// itself, and speed.
#include "rondo/metrics/bootstrap.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "rondo/metrics/bleu.h"
#include "rondo/metrics/chrf.h"
#include "tests/metrics/bleu_test_util.h"

namespace rondo {
namespace {

using testing::Lines;

// The mean of numbers, as a score.
struct MeanStatistics {
  double sum = 0;
  int64_t count = 0;
  MeanStatistics& operator+=(const MeanStatistics& other) {
    sum += other.sum;
    count += other.count;
    return *this;
  }
};

double mean_score(const MeanStatistics& all) { return all.sum / static_cast<double>(all.count); }

std::vector<MeanStatistics> normal_numbers(size_t count, uint64_t seed, double mean,
                                           double deviation) {
  CounterRandom random(seed, "bootstrap test");
  std::vector<MeanStatistics> numbers(count);
  for (MeanStatistics& number : numbers) number = {mean + deviation * random.normal(), 1};
  return numbers;
}

TEST(Bootstrap, DrawsRepeatAndCoverAll) {
  const uint64_t seed = BootstrapOptions().seed;
  BootstrapDraws first(50, seed);
  BootstrapDraws again(50, seed);
  const std::vector<uint32_t> draws = first.next();
  EXPECT_EQ(draws.size(), 50U);
  EXPECT_EQ(draws, again.next());
  EXPECT_NE(draws, first.next());
  EXPECT_NE(draws, BootstrapDraws(50, 1).next());
  std::vector<double> counts(50);
  BootstrapDraws all(50, seed);
  for (int64_t sample = 0; sample < 2000; ++sample) {
    for (const uint32_t draw : all.next()) ++counts.at(draw);
  }
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - 2000) * (count - 2000) / 2000;
  EXPECT_LT(chi_square, 49 + 4 * std::sqrt(2 * 49.0));  // 49 degrees of freedom
  EXPECT_GT(chi_square, 49 - 4 * std::sqrt(2 * 49.0));
}

TEST(Bootstrap, IntervalByHand) {
  std::vector<double> scores;
  for (int i = 99; i >= 0; --i) scores.push_back(i);
  const Interval interval = interval_of(scores);  // 100 / 40 = 2 are cut off at either end
  EXPECT_EQ(interval.mean, 49.5);
  EXPECT_EQ(interval.low, 2);
  EXPECT_EQ(interval.high, 97);
  EXPECT_EQ(interval.half_width(), 47.5);
  EXPECT_EQ(interval_of({7}).low, 7);
  EXPECT_EQ(interval_of({7}).high, 7);
}

TEST(Bootstrap, IntervalOfAMean) {
  // The mean of 400 numbers of deviation 10: deviation 0.5, so 95 % within 1.96 * 0.5 of it.
  const auto numbers = normal_numbers(400, 1, 50, 10);
  BootstrapOptions options;
  options.samples = 4000;
  const Interval interval = bootstrap_interval(numbers, mean_score, options);
  EXPECT_NEAR(interval.mean, mean_score(sum_of(numbers)), 0.05);
  EXPECT_NEAR(interval.half_width(), 0.98, 0.1);
}

TEST(Bootstrap, PValueByHand) {
  // |differences| 1 2 3 6, mean 3; less the mean: -2 -1 0 3. Of these 1 is above 2.5, none above 3,
  // 2 above -0.5.
  const std::vector<double> system = {11, 12, 13, 14};
  const std::vector<double> baseline = {10, 10, 16, 20};
  EXPECT_DOUBLE_EQ(paired_p_value(system, baseline, 2.5), 2.0 / 5);
  EXPECT_DOUBLE_EQ(paired_p_value(system, baseline, -2.5), 2.0 / 5);
  EXPECT_DOUBLE_EQ(paired_p_value(system, baseline, 3), 1.0 / 5);
  EXPECT_DOUBLE_EQ(paired_p_value(system, baseline, 0), 2.0 / 5);
  EXPECT_DOUBLE_EQ(paired_p_value(system, system, 0), 1.0);
}

TEST(Bootstrap, PairedTellsBetterFromEqual) {
  const auto base = normal_numbers(500, 1, 50, 10);
  auto better = base;
  auto equal = base;
  CounterRandom random(2, "bootstrap test");
  for (size_t i = 0; i < base.size(); ++i) {
    better[i].sum += 0.5 + random.normal();
    equal[i].sum += random.normal();
  }
  const PairedBootstrap clear = paired_bootstrap(better, base, mean_score);
  EXPECT_DOUBLE_EQ(clear.p_value, 1.0 / 1001);
  EXPECT_GT(clear.difference.low, 0);
  EXPECT_NEAR(clear.difference.mean, 0.5, 0.15);
  // Paired: the difference varies far less than either system.
  EXPECT_LT(clear.difference.half_width(), clear.system.half_width() / 5);
  const PairedBootstrap chance = paired_bootstrap(equal, base, mean_score);
  EXPECT_GT(chance.p_value, 0.05);
  const PairedBootstrap same = paired_bootstrap(base, base, mean_score);
  EXPECT_EQ(same.p_value, 1);
  EXPECT_EQ(same.difference.low, 0);
  EXPECT_EQ(same.difference.high, 0);
  const PairedBootstrap again = paired_bootstrap(better, base, mean_score);
  EXPECT_EQ(again.system.low, clear.system.low);
  EXPECT_EQ(again.difference.high, clear.difference.high);
  // The test is symmetric.
  EXPECT_EQ(paired_bootstrap(base, better, mean_score).p_value, clear.p_value);
}

// Resampled statistics must equal the statistics of the resampled text.
TEST(Bootstrap, IsThatOfTheResampledText) {
  CounterRandom random(3, "bootstrap test");
  Lines hypotheses;
  Lines references;
  for (int i = 0; i < 30; ++i) {
    Lines words = testing::made_up_words(random, 12, 20);
    references.push_back(testing::joined(words));
    if (!words.empty()) words[random.below(words.size())] = "x";
    hypotheses.push_back(testing::joined(words));
  }
  const BleuOptions bleu;
  const ChrfOptions chrf;
  std::vector<BleuStatistics> sentences;
  std::vector<ChrfStatistics> characters;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    sentences.push_back(bleu_statistics(hypotheses[i], {references[i]}, bleu));
    characters.push_back(chrf_statistics(hypotheses[i], {references[i]}, chrf));
  }
  BootstrapOptions options;
  options.samples = 80;
  std::vector<double> bleu_scores;
  std::vector<double> chrf_scores;
  BootstrapDraws draws(hypotheses.size(), options.seed);
  for (int64_t sample = 0; sample < options.samples; ++sample) {
    BleuStatistics bleu_sum;
    ChrfStatistics chrf_sum;
    for (const uint32_t i : draws.next()) {
      bleu_sum += bleu_statistics(hypotheses[i], {references[i]}, bleu);
      chrf_sum += chrf_statistics(hypotheses[i], {references[i]}, chrf);
    }
    bleu_scores.push_back(bleu_score(bleu_sum, bleu).score);
    chrf_scores.push_back(chrf_score(chrf_sum, chrf));
  }
  std::sort(bleu_scores.begin(), bleu_scores.end());
  std::sort(chrf_scores.begin(), chrf_scores.end());
  const auto score = [&](const BleuStatistics& sum) { return bleu_score(sum, bleu).score; };
  const Interval of_bleu = bootstrap_interval(sentences, score, options);
  EXPECT_EQ(of_bleu.low, bleu_scores[2]);
  EXPECT_EQ(of_bleu.high, bleu_scores[77]);
  const Interval of_chrf = bootstrap_interval(
      characters, [&](const ChrfStatistics& sum) { return chrf_score(sum, chrf); }, options);
  EXPECT_EQ(of_chrf.low, chrf_scores[2]);
  EXPECT_EQ(of_chrf.high, chrf_scores[77]);
}

TEST(Bootstrap, SaysWhatItIs) { EXPECT_EQ(bootstrap_signature({}), "bs:1000|seed:12345"); }

TEST(Bootstrap, ThousandOfAThousandAtOnce) {
#ifdef NDEBUG
  const double limit = 0.3;
#else
  const double limit = 3;
#endif
  BleuStatistics sentence = bleu_statistics("the cat sat on a mat", {"the cat sat on the mat"}, {});
  const std::vector<BleuStatistics> sentences(1000, sentence);
  double best = 1e9;
  for (int run = 0; run < 3; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    const PairedBootstrap paired = paired_bootstrap(
        sentences, sentences, [](const BleuStatistics& sum) { return bleu_score(sum, {}).score; });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(paired.p_value, 1);
    best = std::min(best, took.count());
  }
  EXPECT_LT(best, limit);
}

// sacreBLEU 2.6.0 on the sentences of bleu_cases.json that have one reference:
//   metric.corpus_score(hypotheses, [references], n_bootstrap=1000)
TEST(Bootstrap, IntervalsAreSacreBleus) {
  Lines hypotheses;
  Lines references;
  for (const auto& worked : testing::worked_cases()) {
    if (worked.at("references").size() != 1) continue;
    for (const auto& line : worked.at("hypotheses")) hypotheses.push_back(line);
    for (const auto& line : worked.at("references")[0]) references.push_back(line);
  }
  ASSERT_EQ(hypotheses.size(), 104U);
  const BleuOptions bleu;
  const ChrfOptions chrf;
  std::vector<BleuStatistics> words;
  std::vector<ChrfStatistics> characters;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    words.push_back(bleu_statistics(hypotheses[i], {references[i]}, bleu));
    characters.push_back(chrf_statistics(hypotheses[i], {references[i]}, chrf));
  }
  const Interval of_bleu = bootstrap_interval(
      words, [&](const BleuStatistics& sum) { return bleu_score(sum, bleu).score; });
  EXPECT_NEAR(of_bleu.mean, 33.46476985243833, 1e-6);
  EXPECT_NEAR(of_bleu.half_width(), 29.723424608185663, 1e-6);
  const Interval of_chrf = bootstrap_interval(
      characters, [&](const ChrfStatistics& sum) { return chrf_score(sum, chrf); });
  EXPECT_NEAR(of_chrf.mean, 48.294937, 1e-4);  // in single precision
  EXPECT_NEAR(of_chrf.half_width(), 26.472723, 1e-4);
}

}  // namespace
}  // namespace rondo
