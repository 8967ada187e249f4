// Test items: stored, scored and compared, against small cases computed by hand.
#include "rondo/metrics/test_items.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rondo/base/files.h"
#include "rondo/metrics/statistics.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

TestItems images(const std::vector<int>& right) {
  TestItems items;
  items.task = "image";
  items.test = "set";
  for (const int r : right) items.add_image(r != 0, true, r != 0 ? 0.1 : 2.0);
  return items;
}

TEST(TestItems, ScoresAreThoseOfTheSum) {
  TestItems text;
  text.task = "lm";
  text.add_text(10 * M_LN2, 5, 8, 2);
  text.add_text(6 * M_LN2, 3, 8, 2);
  EXPECT_NEAR(test_score("bits_per_token", text), 2.0, 1e-12);
  EXPECT_NEAR(test_score("bits_per_byte", text), 1.0, 1e-12);
  EXPECT_NEAR(test_score("word_perplexity", text), std::exp2(4.0), 1e-9);
  const TestItems pictures = images({1, 1, 0, 1});
  EXPECT_DOUBLE_EQ(test_score("accuracy", pictures), 75);
  EXPECT_DOUBLE_EQ(test_score("top_five", pictures), 100);
  EXPECT_NEAR(test_score("loss", pictures), (0.3 + 2.0) / 4, 1e-12);
}

TEST(TestItems, SentencesScoreAsTheCorpusDoes) {
  TestItems items;
  items.task = "translation";
  BleuStatistics bleu;
  ChrfStatistics chrf;
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"the cat sat on the mat", "the cat sat on a mat"}, {"a dog barks loudly", "a dog barks"}};
  for (const auto& [hypothesis, reference] : lines) {
    const BleuStatistics b = bleu_statistics(hypothesis, {reference}, {});
    const ChrfStatistics c = chrf_statistics(hypothesis, {reference}, {});
    items.add_sentence(b, c);
    bleu += b;
    chrf += c;
  }
  EXPECT_DOUBLE_EQ(test_score("bleu", items), bleu_score(bleu, {}).score);
  EXPECT_DOUBLE_EQ(test_score("chrf", items), chrf_score(chrf, {}));
}

TEST(TestItems, AreKeptExactly) {
  const testing::TempDir folder;
  const std::string path = folder.path() + "/test.items";
  const TestItems before = images({1, 0, 0, 1, 1});
  before.save(path);
  const TestItems after = TestItems::load(path);
  EXPECT_EQ(after.task, "image");
  EXPECT_EQ(after.test, "set");
  ASSERT_EQ(after.items.size(), 5U);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(after.items[i].values, before.items[i].values);
  write_file(path, "not a tensor file");
  EXPECT_ANY_THROW(TestItems::load(path));
}

TEST(TestItems, TwoClassifiersAreComparedItemByItem) {
  // Of 20 images both are right on 10; the first alone on 8, the second alone on 2.
  std::vector<int> a(20, 0);
  std::vector<int> b(20, 0);
  for (int i = 0; i < 18; ++i) a[static_cast<size_t>(i)] = 1;
  for (int i = 0; i < 10; ++i) b[static_cast<size_t>(i)] = 1;
  b[18] = b[19] = 1;
  const Comparison c = compare_items("accuracy", images(a), images(b));
  EXPECT_DOUBLE_EQ(c.a - c.b, 30);
  ASSERT_TRUE(c.exact.has_value());
  EXPECT_DOUBLE_EQ(*c.exact, mcnemar_p_value(8, 2));
  // The differences +1 (8 times), -1 (twice) and 0 (10 times) have a standard error of
  // 100 sqrt(0.41 / 20) = 14.3, so the interval reaches from about 2 to 58.
  EXPECT_NEAR(c.difference.low, 2, 6);
  EXPECT_NEAR(c.difference.high, 58, 6);
}

TEST(TestItems, AModelIsNoBetterThanItself) {
  const TestItems items = images({1, 0, 1, 1, 0, 0, 1});
  const Comparison c = compare_items("accuracy", items, items);
  EXPECT_EQ(c.difference.low, 0);
  EXPECT_EQ(c.difference.high, 0);
  EXPECT_EQ(c.p_value, 1);
  EXPECT_EQ(*c.exact, 1);
}

TEST(TestItems, OtherItemsAreRefused) {
  TestItems other = images({1, 0});
  EXPECT_ANY_THROW(compare_items("accuracy", images({1}), other));
  other.test = "another set";
  EXPECT_ANY_THROW(compare_items("accuracy", images({1, 0}), other));
}

}  // namespace
}  // namespace rondo
