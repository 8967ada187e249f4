// chrF: published values, values computed by hand and by another program, and counting against the
// obvious method.
#include "rondo/metrics/chrf.h"

#include <gtest/gtest.h>

#include "rondo/base/version.h"
#include "tests/metrics/bleu_test_util.h"

namespace rondo {
namespace {

using testing::corpus_sum;
using testing::Lines;

ChrfStatistics chrf_counted(const Lines& hypotheses, const std::vector<Lines>& references,
                            const ChrfOptions& options) {
  return corpus_sum(hypotheses, references, [&](auto line, const auto& others) {
    return chrf_statistics(line, others, options);
  });
}

double chrf_of(const Lines& hypotheses, const std::vector<Lines>& references,
               const ChrfOptions& options = {}) {
  return chrf_score(chrf_counted(hypotheses, references, options), options);
}

struct Published {
  Lines hypotheses;
  Lines references;
  double score;
};

ChrfOptions published_options(bool epsilon, int64_t beta = 3) {
  ChrfOptions options;
  options.beta = beta;
  options.epsilon_smoothing = epsilon;
  return options;
}

const char* const kRiskHypothesis =
    "risk assessment must be made of those who are qualified and expertise in the sector - these "
    "are the scientists .";
const char* const kRiskReference =
    "risk assessment has to be undertaken by those who are qualified and expert in that area - "
    "that is the scientists "
    ".";
const char* const kObamaReference =
    "Das Verhältnis zwischen Obama und Netanyahu ist nicht gerade freundschaftlich.";
const char* const kWall = "Niemand hat die Absicht, eine Mauer zu errichten";

// sacreBLEU's own tests, to their tolerance.
TEST(Chrf, PublishedEffectiveOrder) {
  const std::vector<Published> cases = {
      {{"a"}, {"a"}, 100.0},       {{""}, {"reference"}, 0.0}, {{"a b c"}, {"a b c"}, 100.0},
      {{"a b c"}, {"abc"}, 100.0}, {{""}, {"c"}, 0.0},         {{"a", "b"}, {"a", "c"}, 50.0},
      {{"aa"}, {"ab"}, 25.0},
  };
  for (const Published& published : cases) {
    EXPECT_NEAR(chrf_of(published.hypotheses, {published.references}, published_options(false)),
                published.score, 1e-4)
        << published.hypotheses[0];
  }
}

TEST(Chrf, PublishedEpsilon) {
  const std::vector<Published> cases = {
      {{"abcdefg"}, {"hijklmnop"}, 0.0},
      {{"a"}, {"b"}, 0.0},
      {{""}, {"b"}, 0.0},
      {{""}, {"ref"}, 0.0},
      {{""}, {"reference"}, 0.0},
      {{"aa"}, {"ab"}, 8.3333},
      {{"a", "b"}, {"a", "c"}, 8.3333},
      {{"a"}, {"a"}, 16.6667},
      {{"a b c"}, {"a b c"}, 50.0},
      {{"a b c"}, {"abc"}, 50.0},
      {{std::string(" ") + kRiskHypothesis}, {kRiskReference}, 63.361730},
      {{" Die    Beziehung zwischen  Obama und Netanjahu ist nicht gerade  freundlich. "},
       {kObamaReference},
       64.1302698},
      {{kWall}, {kWall}, 100.0},
  };
  for (const Published& published : cases) {
    EXPECT_NEAR(chrf_of(published.hypotheses, {published.references}, published_options(true)),
                published.score, 1e-4)
        << published.hypotheses[0];
  }
}

TEST(Chrf, PublishedWhiteSpace) {
  ChrfOptions options = published_options(false);
  options.whitespace = true;
  EXPECT_NEAR(chrf_of({"Die Beziehung zwischen Obama und Netanjahu ist nicht gerade freundlich."},
                      {{kObamaReference}}, options),
              67.3481606, 1e-4);
  EXPECT_NEAR(chrf_of({kRiskHypothesis}, {{kRiskReference}}, options), 65.2414427, 1e-4);
}

TEST(Chrf, PublishedSentences) {
  const std::vector<Published> cases = {
      {{"Co nás nejvíc trápí, protože lékaři si vybírají, kdo bude žít a kdo zemře."},
       {"Nejvíce smutní jsme z toho, že musíme rozhodovat o tom, kdo bude žít a kdo zemře."},
       39.14078509},
      {{"Nebo prostě nemají vybavení, které by jim pomohlo, uvedli lékaři."},
       {"A někdy nemáme ani potřebný materiál, abychom jim pomohli, popsali lékaři."},
       31.22557079},
      {{"Lapali po dechu, jejich životy skončily dřív, než skutečně začaly."},
       {"Lapali po dechu a pak jejich život skončil - dřív, než skutečně mohl začít, připomněli."},
       57.15704367},
  };
  for (const Published& published : cases) {
    EXPECT_NEAR(chrf_of(published.hypotheses, {published.references}, published_options(true, 2)),
                published.score, 1e-4);
  }
}

TEST(Chrf, ByHand) {
  // "ab" against "abc": characters 2 of 2 and of 3, pairs 1 of 1 and of 2; the hypothesis has no
  // triples. P = (1 + 1) / 2, R = (2/3 + 1/2) / 2 = 7/12, F = 5 P R / (4 P + R) = (35/12) /
  // (55/12).
  EXPECT_NEAR(chrf_of({"ab"}, {{"abc"}}), 100.0 * 35 / 55, 1e-12);
  // With words: 0 of 1 and 0 of 1; no pairs. P = 2/3, R = 7/18, F = (35/27) / (8/3 + 7/18) =
  // (35/27) / (55/18).
  ChrfOptions words;
  words.word_order = 2;
  EXPECT_NEAR(chrf_of({"ab"}, {{"abc"}}, words), 100.0 * 35 / 27 * 18 / 55, 1e-12);
  // Clipping: "aaa" against "aba" matches a twice of three, aa and aaa never.
  // P = R = (2/3 + 0 + 0) / 3 = 2/9, so F = 2/9.
  EXPECT_NEAR(chrf_of({"aaa"}, {{"aba"}}), 100.0 * 2 / 9, 1e-12);
}

TEST(Chrf, WordsLoseOneMark) {
  ChrfOptions words;
  words.word_order = 2;
  const auto matches = [&](const std::string& hypothesis, const std::string& reference) {
    return chrf_counted({hypothesis}, {{reference}}, words).orders[6].matches;
  };
  EXPECT_EQ(matches("(hi)", "(hi)"), 2);  // "(hi" and ")"
  EXPECT_EQ(matches("(hi)", "( hi )"), 1);
  EXPECT_EQ(matches("(hi", "( hi"), 2);
  EXPECT_EQ(matches("hi!!", "hi ! !"), 1);  // "hi!" and "!"
  EXPECT_EQ(matches("!", "!"), 1);
  EXPECT_EQ(matches("é", "é"), 1);
  EXPECT_EQ(matches("¡hola", "¡ hola"), 0);  // only ASCII marks
  EXPECT_EQ(matches("don't", "don ' t"), 0);
}

TEST(Chrf, TakesTheBestReference) {
  EXPECT_NEAR(chrf_of({"the cat"}, {{"a dog"}, {"the cat"}, {"cat the"}}), 100.0, 1e-9);
  // Per sentence, not per corpus.
  EXPECT_NEAR(chrf_of({"the cat", "a dog"}, {{"the cat", "xyz"}, {"xyz", "a dog"}}), 100.0, 1e-9);
  // Of equal scores the first counts: nothing matches, so the lengths are those of the first.
  EXPECT_EQ(chrf_counted({"abc"}, {{"x"}, {"wxyz"}}, {}).orders[0].reference, 1);
}

TEST(Chrf, LowerCase) {
  ChrfOptions lower;
  lower.lowercase = true;
  EXPECT_NEAR(chrf_of({"ÀÉ ΣΑΣ"}, {{"àé σας"}}, lower), 100.0, 1e-9);
  EXPECT_LT(chrf_of({"ÀÉ ΣΑΣ"}, {{"àé σας"}}), 1.0);
}

TEST(Chrf, WorkedOutByAnotherProgram) {
  for (const nlohmann::json& worked : testing::worked_cases()) {
    SCOPED_TRACE(worked.at("name").get<std::string>());
    const auto hypotheses = worked.at("hypotheses").get<Lines>();
    const auto references = worked.at("references").get<std::vector<Lines>>();
    for (const size_t word_order : {size_t{0}, size_t{2}}) {
      ChrfOptions options;
      options.word_order = word_order;
      options.lowercase = worked.at("options").value("lowercase", false);
      const nlohmann::json& expected = worked.at(word_order == 0 ? "chrf" : "chrf_words");
      const ChrfStatistics statistics = chrf_counted(hypotheses, references, options);
      for (size_t i = 0; i < 6 + word_order; ++i) {
        const ChrfStatistics::Order& order = statistics.orders[i];
        EXPECT_EQ((std::array<int64_t, 3>{order.hypothesis, order.reference, order.matches}),
                  (expected.at("orders").at(i).get<std::array<int64_t, 3>>()))
            << i;
      }
      EXPECT_NEAR(chrf_score(statistics, options), expected.at("score").get<double>(), 1e-9);
    }
  }
}

TEST(Chrf, CountsAsTheObviousWay) {
  CounterRandom random(2, "chrf test");
  for (int round = 0; round < 200; ++round) {
    const Lines letters = {"a", "b", "é", "猫", "👍"};
    const auto text = [&](Lines& characters) {
      std::string line;
      for (uint64_t left = random.below(40); left > 0; --left) {
        if (random.below(4) == 0) line += random.below(2) == 0 ? " " : "\u3000";
        characters.push_back(letters[random.below(2 + random.below(4))]);
        line += characters.back();
      }
      return line;
    };
    Lines hypothesis;
    Lines reference;
    const std::string line = text(hypothesis);
    const std::string other = text(reference);
    const ChrfStatistics statistics = chrf_counted({line}, {{other}}, {});
    for (size_t n = 1; n <= 6; ++n) {
      ASSERT_EQ(statistics.orders[n - 1].matches,
                testing::plain_matches(hypothesis, {reference}, n));
    }
  }
}

TEST(Chrf, SaysWhatItIs) {
  const std::string version = std::string("|version:rondo-") + kVersion;
  EXPECT_EQ(chrf_signature({}, 1), "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no" + version);
  ChrfOptions options = published_options(true);
  options.word_order = 2;
  options.lowercase = true;
  options.whitespace = true;
  EXPECT_EQ(chrf_signature(options, 2, "bs:10|seed:1"),
            "chrF3++|nrefs:2|bs:10|seed:1|case:lc|eff:no|nc:6|nw:2|space:yes" + version);
}

}  // namespace
}  // namespace rondo
