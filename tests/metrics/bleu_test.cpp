// BLEU: published values, values computed by hand and by another program, counting against the
// obvious method, and the 13a tokenizer.
#include "rondo/metrics/bleu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rondo/base/version.h"
#include "rondo/metrics/bleu_text.h"
#include "tests/metrics/bleu_test_util.h"

namespace rondo {
namespace {

using testing::corpus_sum;
using testing::error_of;
using testing::Lines;

BleuStatistics counted(const Lines& hypotheses, const std::vector<Lines>& references,
                       const BleuOptions& options) {
  return corpus_sum(hypotheses, references, [&](auto line, const auto& others) {
    return bleu_statistics(line, others, options);
  });
}

BleuScore scored(const Lines& hypotheses, const std::vector<Lines>& references,
                 const BleuOptions& options = {}) {
  return bleu_score(counted(hypotheses, references, options), options);
}

BleuOptions tokenized(const std::string& tokenize) {
  BleuOptions options;
  options.tokenize = tokenize;
  return options;
}

BleuOptions smoothed(const std::string& smooth, std::optional<double> value = std::nullopt) {
  BleuOptions options;
  options.smooth = smooth;
  options.smooth_value = value;
  return options;
}

BleuOptions options_from(const nlohmann::json& json) {
  BleuOptions options;
  options.tokenize = json.value("tokenize", options.tokenize);
  options.smooth = json.value("smooth", options.smooth);
  if (json.contains("smooth_value")) options.smooth_value = json.at("smooth_value").get<double>();
  options.effective_order = json.value("effective_order", false);
  options.lowercase = json.value("lowercase", false);
  return options;
}

TEST(BleuTokens, MarksStandAlone) {
  EXPECT_EQ(tokenize_13a("Hello, world!"), "Hello , world !");
  EXPECT_EQ(tokenize_13a("(a+b)/c=d"), "( a + b ) / c = d");
  EXPECT_EQ(tokenize_13a("[x]{y}~`z_w^v\\u"), "[ x ] { y } ~ ` z _ w ^ v \\ u");
  EXPECT_EQ(tokenize_13a("it's well-known"), "it's well-known");
  EXPECT_EQ(tokenize_13a(""), "");
  EXPECT_EQ(tokenize_13a(" \t\r "), "");
}

TEST(BleuTokens, NumbersKeepTheirStops) {
  EXPECT_EQ(tokenize_13a("1,000.50 dollars."), "1,000.50 dollars .");
  EXPECT_EQ(tokenize_13a("in 2019, 5. and .5 or a.5"), "in 2019 , 5 . and . 5 or a . 5");
  EXPECT_EQ(tokenize_13a("1990-1995 A4-size e-mail -5"), "1990 - 1995 A4 - size e-mail -5");
  EXPECT_EQ(tokenize_13a("..."), ". . .");
  EXPECT_EQ(tokenize_13a("1.,2"), "1 . , 2");
  EXPECT_EQ(tokenize_13a("٣,٥"), "٣ , ٥");  // only 0 .. 9 are digits
}

TEST(BleuTokens, MarkUpIsUndone) {
  EXPECT_EQ(tokenize_13a("&quot;a&quot; &amp; &lt;b&gt;"), "\" a \" & < b >");
  EXPECT_EQ(tokenize_13a("&amp;lt; &amp;quot;"), "< & quot ;");  // each once, in that order
  EXPECT_EQ(tokenize_13a("a<skipped>b <skip<skipped>ped>"), "ab < skipped >");
  EXPECT_EQ(tokenize_13a("hyphen-\nated\nline"), "hyphenated line");
}

TEST(BleuTokens, OtherScripts) {
  EXPECT_EQ(tokenize_13a("“no” — 5–6…"), "“no” — 5–6…");
  EXPECT_EQ(tokenize_13a("猫,垫子.它3.5小时"), "猫 , 垫子 . 它3.5小时");
  EXPECT_EQ(tokenize_13a("é.ü,1,é"), "é . ü , 1 , é");
  EXPECT_EQ(tokenize_13a("a\u00a0b\u3000c\u2028d\u0085e\u200bf\x1cg"), "a b c d e\u200bf g");
  EXPECT_EQ(tokenize_13a("\xff.\xc3,a"), "\xff . \xc3 , a");  // not UTF-8: bytes unchanged
}

TEST(BleuText, WhiteSpaceAndLowerCaseArePythons) {
  EXPECT_EQ(strip_right("a b \t\r\n\u00a0\u3000\u2009"), "a b");
  EXPECT_EQ(strip_right("\u3000"), "");
  EXPECT_EQ(strip_right("a\xA0"), "a\xA0");  // a single byte is not white space
  EXPECT_EQ(lower_case("ÄÖÜẞ ÀÉ ПРИВЕТ"), "äöüß àé привет");
  EXPECT_EQ(lower_case("ΟΔΥΣΣΕΥΣ Σ ΑΣ'Β ΑΣ. ΑΣ-Β"), "οδυσσευς σ ασ'β ας. ας-β");
  EXPECT_EQ(lower_case("İI"), "i\u0307i");
  EXPECT_EQ(lower_case("A\xFF\xC3Z"), "a\xFF\xC3z");
  EXPECT_EQ(characters_of("aé猫👍\xFF\xC3").size(), 6U);
}

// sacreBLEU's own tests, to their tolerances.
TEST(Bleu, PublishedCorpora) {
  const Lines hypotheses = {"The dog bit the man.", "It wasn't surprising.",
                            "The man had just bitten him."};
  const std::vector<Lines> references = {
      {"The dog bit the man.", "It was not unexpected.", "The man bit him first."},
      {"The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."}};
  EXPECT_NEAR(scored(hypotheses, references).score, 48.530827, 2e-8);
  EXPECT_NEAR(scored(hypotheses, references, tokenized("none")).score, 49.1919566, 2e-8);
  EXPECT_NEAR(scored(hypotheses, references, smoothed("none")).score, 48.530827, 2e-8);
  EXPECT_EQ(scored({"", "", ""}, references).score, 0);
}

TEST(Bleu, PublishedRawScores) {
  BleuOptions raw = smoothed("floor", 0.01);
  raw.tokenize = "none";
  raw.effective_order = true;
  const auto score = [&](const Lines& hypotheses, const Lines& references) {
    return scored(hypotheses, {references}, raw).score / 100;
  };
  EXPECT_EQ(score({"this is a test", "another test"}, {"ref1", "ref2"}), 0.0);
  EXPECT_NEAR(score({"this is a test"}, {"this is a test"}), 1.0, 1e-8);
  EXPECT_NEAR(score({"this is a fest"}, {"this is a test"}), 0.223606797749979, 1e-8);
  EXPECT_NEAR(score({"test"}, {"a test"}), 0.3678794411714425, 1e-8);
  EXPECT_NEAR(score({"a test"}, {"a test"}), 1.0, 1e-8);
  EXPECT_NEAR(score({"a little test"}, {"a test"}), 0.03218297948685433, 1e-8);
  const Lines hypothesis = {"am I am a character sequence"};
  const std::vector<Lines> reference = {{"I am a symbol string sequence a a"}};
  raw.smooth_value = std::nullopt;
  EXPECT_NEAR(score(hypothesis, reference[0]), 0.1555722182, 1e-8);
  raw.smooth_value = 0.0;
  EXPECT_EQ(score(hypothesis, reference[0]), 0);
  const BleuStatistics statistics = counted(hypothesis, reference, raw);
  EXPECT_EQ(statistics.correct, (std::array<int64_t, 4>{4, 2, 1, 0}));
  EXPECT_EQ(statistics.total, (std::array<int64_t, 4>{6, 5, 4, 3}));
}

TEST(Bleu, PublishedScoresFromCounts) {
  EXPECT_NEAR(bleu_score({{9, 7, 5, 3}, {10, 8, 6, 4}, 11, 11}, smoothed("none")).score,
              83.75922397, 1e-6);
  for (const double value : {0.0, 0.01, 0.1}) {
    const BleuOptions floor = smoothed("floor", value);
    EXPECT_EQ(bleu_score({{0, 0, 0, 0}, {4, 4, 2, 1}, 0, 1}, floor).score, 0);
    EXPECT_EQ(bleu_score({{0, 0, 0, 0}, {10, 11, 12, 0}, 14, 10}, floor).score, 0);
    EXPECT_EQ(bleu_score({{0, 0, 0, 0}, {0, 0, 0, 0}, 0, 0}, floor).score, 0);
    EXPECT_EQ(bleu_score({{0, 0, 0, 0}, {0, 0, 0, 0}, 1, 5}, floor).score, 0);
  }
  EXPECT_EQ(bleu_score({{6, 5, 4, 0}, {6, 5, 4, 3}, 6, 6}, smoothed("floor", 0.0)).score, 0);
}

TEST(Bleu, PublishedSentence) {
  const std::string reference = "producţia de zahăr brut se exprimă în zahăr alb;";
  const std::string hypothesis =
      "Producția de zahăr primă va fi exprimată în ceea ce privește zahărul alb;";
  const auto score = [&](BleuOptions options) {
    options.effective_order = true;
    return scored({hypothesis}, {{reference}}, options).score;
  };
  EXPECT_NEAR(score({}), 8.493, 1e-3);
  EXPECT_EQ(score(smoothed("none")), 0);
  EXPECT_NEAR(score(smoothed("floor")), 4.51688, 1e-5);
  EXPECT_NEAR(score(smoothed("floor", 0.1)), 4.51688, 1e-5);
  EXPECT_NEAR(score(smoothed("floor", 0.5)), 10.10, 1e-3);
  EXPECT_NEAR(score(smoothed("add-k")), 14.882, 1e-3);
  EXPECT_NEAR(score(smoothed("add-k", 2)), 21.389, 1e-3);
  EXPECT_NEAR(score(tokenized("none")), 7.347, 1e-3);
  EXPECT_NEAR(score(tokenized("char")), 40.8759, 1e-4);
  BleuOptions lower = tokenized("char");
  lower.lowercase = true;
  EXPECT_NEAR(score(lower), 42.0267, 1e-4);
  for (const char* smooth : {"exp", "none", "floor", "add-k"}) {
    EXPECT_EQ(scored({"this is a cat"}, {{"okay thanks"}}, smoothed(smooth)).score, 0);
  }
}

// The examples in section 2.1 of the BLEU paper.
TEST(Bleu, PapersExamples) {
  BleuOptions options;
  options.lowercase = true;
  const std::vector<Lines> references = {
      {"It is a guide to action that ensures that the military will forever heed Party commands"},
      {"It is the guiding principle which guarantees the military forces always being under the "
       "command of the Party"},
      {"It is the practical guide for the army always to heed the directions of the party"}};
  const BleuStatistics first = counted({"It is a guide to action which ensures that the military "
                                        "always obeys the commands of the party"},
                                       references, options);
  EXPECT_EQ(first.correct[0], 17);  // of 18: all but "obeys"
  EXPECT_EQ(first.total[0], 18);
  EXPECT_EQ(first.correct[1], 10);  // of 17
  EXPECT_EQ(first.total[1], 17);
  const BleuStatistics second = counted(
      {"It is to insure the troops forever hearing the activity guidebook that party direct"},
      references, options);
  EXPECT_EQ(second.correct[0], 8);  // of 14
  EXPECT_EQ(second.total[0], 14);
  EXPECT_EQ(second.correct[1], 1);  // of 13
  EXPECT_EQ(second.total[1], 13);
  const BleuStatistics third =
      counted({"the the the the the the the"},
              {{"The cat is on the mat"}, {"There is a cat on the mat"}}, options);
  EXPECT_EQ(third.correct[0], 2);  // of 7
  EXPECT_EQ(third.total[0], 7);
  EXPECT_EQ(third.correct[1], 0);
}

TEST(Bleu, ByHand) {
  // 1-grams a b c d f; 2-grams ab bc df of 4; 3-grams abc of 3; no 4-gram of 2, for which exp takes
  // 1 / (2 * 2). Five words for seven: BP = exp(1 - 7 / 5).
  const BleuScore swapped = scored({"a b c d f"}, {{"a b c f d f b"}}, tokenized("none"));
  EXPECT_DOUBLE_EQ(swapped.precisions[0], 100.0);
  EXPECT_EQ(swapped.hypothesis_length, 5);
  EXPECT_EQ(swapped.reference_length, 7);
  EXPECT_DOUBLE_EQ(swapped.precisions[1], 75.0);
  EXPECT_DOUBLE_EQ(swapped.precisions[2], 100.0 / 3);
  EXPECT_DOUBLE_EQ(swapped.precisions[3], 25.0);
  EXPECT_NEAR(swapped.score, 100 * std::exp(-0.4) * std::pow(0.75 / 3 * 0.25, 0.25), 1e-12);
  // Two zero orders halve twice: 2 of 4 words, 1 of 3, then 1 / (2 * 2) and 1 / (4 * 1).
  const BleuScore halved = scored({"a b x y"}, {{"p a b q"}}, tokenized("none"));
  EXPECT_NEAR(halved.score, 100 * std::pow(0.5 / 3 * 0.25 * 0.25, 0.25), 1e-12);
  // Twice as long as the reference: no penalty, 4 of 8, 3 of 7, 2 of 6, 1 of 5.
  const BleuScore longer = scored({"a b c d e f g h"}, {{"a b c d"}}, tokenized("none"));
  EXPECT_NEAR(longer.score, 100 * std::pow(4.0 / 8 * 3 / 7 * 2 / 6 * 1 / 5, 0.25), 1e-12);
  // Half as long: all match, BP = exp(1 - 8 / 4).
  EXPECT_NEAR(scored({"a b c d"}, {{"a b c d e f g h"}}).score, 100 * std::exp(-1.0), 1e-12);
}

TEST(Bleu, WorkedOutByAnotherProgram) {
  ASSERT_GE(testing::worked_cases().size(), 90U);
  for (const nlohmann::json& worked : testing::worked_cases()) {
    SCOPED_TRACE(worked.at("name").get<std::string>());
    const auto hypotheses = worked.at("hypotheses").get<Lines>();
    const auto references = worked.at("references").get<std::vector<Lines>>();
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      EXPECT_EQ(tokenize_13a(strip_right(hypotheses[i])),
                worked.at("tokens_13a").at(i).get<std::string>());
    }
    const BleuOptions options = options_from(worked.at("options"));
    const nlohmann::json& expected = worked.at("bleu");
    const BleuStatistics statistics = counted(hypotheses, references, options);
    const BleuScore score = bleu_score(statistics, options);
    for (size_t n = 0; n < kBleuOrder; ++n) {
      EXPECT_EQ(statistics.correct[n], expected.at("correct").at(n).get<int64_t>());
      EXPECT_EQ(statistics.total[n], expected.at("total").at(n).get<int64_t>());
      EXPECT_NEAR(score.precisions[n], expected.at("precisions").at(n).get<double>(), 1e-9);
    }
    EXPECT_EQ(score.hypothesis_length, expected.at("hypothesis_length").get<int64_t>());
    EXPECT_EQ(score.reference_length, expected.at("reference_length").get<int64_t>());
    EXPECT_NEAR(score.brevity_penalty, expected.at("brevity_penalty").get<double>(), 1e-12);
    EXPECT_NEAR(score.score, expected.at("score").get<double>(), 1e-9);
  }
}

TEST(Bleu, CountsAsTheObviousWay) {
  CounterRandom random(1, "bleu test");
  for (int round = 0; round < 300; ++round) {
    const uint64_t vocabulary = 1 + random.below(12);
    const uint64_t longest = round % 10 == 0 ? 200 : 20;
    const Lines hypothesis = testing::made_up_words(random, longest, vocabulary);
    std::vector<Lines> references(1 + random.below(4));
    std::vector<Lines> lines;
    for (Lines& reference : references) {
      reference = testing::made_up_words(random, longest, vocabulary);
      lines.push_back({testing::joined(reference)});
    }
    const BleuStatistics statistics =
        counted({testing::joined(hypothesis)}, lines, tokenized("none"));
    for (size_t n = 0; n < kBleuOrder; ++n) {
      ASSERT_EQ(statistics.correct[n], testing::plain_matches(hypothesis, references, n + 1));
      ASSERT_EQ(statistics.total[n],
                std::max<int64_t>(0, static_cast<int64_t>(hypothesis.size() - n)));
    }
  }
}

// Hash tables are sized by the line; this one makes them grow, and has more distinct words than 16
// bits can number.
TEST(Bleu, LongLinesAreExact) {
  Lines words;
  for (int i = 0; i < 100'000; ++i) words.push_back(std::to_string(i));
  const std::string line = testing::joined(words);
  const BleuStatistics whole = counted({line}, {{line}}, {});
  EXPECT_EQ(whole.correct, whole.total);
  std::reverse(words.begin(), words.end());
  EXPECT_EQ(counted({testing::joined(words)}, {{line}}, {}).correct,
            (std::array<int64_t, 4>{100'000, 0, 0, 0}));
}

TEST(Bleu, SaysWhatItIs) {
  BleuScore score;
  score.score = 33.1249;
  score.precisions = {65.08, 39.91, 26.49, 17.81};
  score.brevity_penalty = 1;
  score.hypothesis_length = 12999;
  score.reference_length = 12920;
  EXPECT_EQ(score.verbose(),
            "BLEU = 33.12 65.1/39.9/26.5/17.8 (BP = 1.000 ratio = 1.006 hyp_len = 12999 ref_len = "
            "12920)");
  EXPECT_EQ(BleuScore().verbose(),
            "BLEU = 0.00 0.0/0.0/0.0/0.0 (BP = 0.000 ratio = 0.000 hyp_len = 0 ref_len = 0)");
  const std::string version = std::string("|version:rondo-") + kVersion;
  EXPECT_EQ(bleu_signature({}, 1), "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp" + version);
  BleuOptions options = smoothed("floor");
  options.tokenize = "char";
  options.lowercase = true;
  options.effective_order = true;
  EXPECT_EQ(
      bleu_signature(options, 3, "bs:1000|seed:12345"),
      "BLEU|nrefs:3|bs:1000|seed:12345|case:lc|eff:yes|tok:char|smooth:floor[0.10]" + version);
  EXPECT_EQ(bleu_signature(smoothed("add-k", 2), 1),
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:add-k[2.00]" + version);
}

TEST(Bleu, RefusesUnknownNames) {
  check_bleu_options({});
  const Error tokenize = error_of([] { check_bleu_options(tokenized("14a")); });
  EXPECT_EQ(tokenize.code(), ExitCode::bad_input);
  EXPECT_EQ(tokenize.message(), "BLEU: tokenize: expected one of 13a, none, char, got '14a'");
  EXPECT_EQ(error_of([] { check_bleu_options(smoothed("add")); }).code(), ExitCode::bad_input);
}

}  // namespace
}  // namespace rondo
