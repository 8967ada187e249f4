// The benefit of states, against reading a document token by token; gains by words.
#include "rondo/study/state_use.h"

#include <cmath>

#include "rondo/study/word_gains.h"
#include "tests/study/study_models.h"

namespace rondo::test {
namespace {

using namespace study;

struct Text {
  explicit Text(const std::string& text) {
    testing::spill(folder.file("text.txt"), text);
    tokenizer = make_tokenizer("bytes");
    documents = std::make_unique<Documents>(
        Documents::open({folder.file("text.txt"), folder.file("cache")}, *tokenizer));
  }
  testing::TempDir folder;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<Documents> documents;
};

std::string wheel(int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += i % 3 == 0 ? "the wheel turns " : "and the wheel again, ";
  return text;
}

TinyModel byte_model(const std::string& name) {
  ModelConfig config = shrink(find_model(name).config());
  std::get<LanguageModelConfig>(config.network).vocabulary = kByteVocabulary;
  return TinyModel(config);
}

// Bits of every token but the first, one token after the other.
std::vector<double> bits_by_hand(LanguageModel& model, const std::string& text, bool zero) {
  const at::NoGradGuard no_grad;
  State state;
  std::vector<double> bits;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const Tensor token = at::full({1, 1}, int64_t{static_cast<unsigned char>(text[i])}, at::kLong);
    const Tensor logits = model.forward_tokens(token, state, Scope(), zero)[0][0];
    const auto next = int64_t{static_cast<unsigned char>(text[i + 1])};
    bits.push_back(-logits.to(at::kDouble).log_softmax(0)[next].item<double>() / M_LN2);
  }
  return bits;
}

TEST(StateUse, IsTheDifferenceOfTwoReadings) {
  for (const char* name : {"brt/rec-fixed-skip", "brt/rec-lstm-dual", "brt/feedback-fixed-skip"}) {
    const TinyModel m = byte_model(name);
    auto& model = dynamic_cast<LanguageModel&>(*m.network);
    const std::string text = wheel(14);
    const Text data(text);
    StateUseOptions options;
    options.excerpt = 40;
    const StateUse use = state_use(model, *data.documents, data.tokenizer, options);
    const std::vector<double> with = bits_by_hand(model, text, false);
    const std::vector<double> without = bits_by_hand(model, text, true);
    double a = 0, b = 0;
    for (const double v : with) a += v;
    for (const double v : without) b += v;
    ASSERT_EQ(use.tokens, int64_t(text.size()) - 1);
    EXPECT_NEAR(use.bits_with, a / double(with.size()), 1e-4) << name;
    EXPECT_NEAR(use.bits_without, b / double(with.size()), 1e-4) << name;
    // The excerpt is text, with the gains of its tokens.
    ASSERT_EQ(use.excerpt.size(), 40U);
    for (size_t i = 0; i < use.excerpt.size(); ++i) {
      const size_t at = size_t(use.excerpt_from) + i;
      EXPECT_EQ(use.excerpt[i].text, std::string(1, text[at]));
      EXPECT_NEAR(use.excerpt[i].bits, without[at - 1] - with[at - 1], 1e-3);
    }
    double positions = 0;
    for (const GainBucket& bucket : use.by_position) positions += bucket.sum;
    EXPECT_NEAR(positions, b - a, 1e-2);
    EXPECT_FALSE(use.states.empty());
    EXPECT_FALSE(use.gates.empty());
  }
}

TEST(StateUse, SamplesDescribeTheStates) {
  const TinyModel m = byte_model("brt/rec-fixed-skip");
  auto& model = dynamic_cast<LanguageModel&>(*m.network);
  const Text data(wheel(14));
  const StateUse use = state_use(model, *data.documents, data.tokenizer, {});
  for (const auto& [level, samples] : use.states) {
    ASSERT_FALSE(samples.empty());
    for (const StateSample& s : samples) {
      EXPECT_GT(s.norm, 0);
      EXPECT_GE(s.rank, 1 - 1e-6);
      EXPECT_LE(s.rank, double(model.config().time.states) + 1e-6);
      EXPECT_LE(std::abs(s.similarity), 1 + 1e-6);
    }
  }
}

TEST(StateUse, NeedsStates) {
  const TinyModel m = byte_model("brt/slide-12l");
  const Text data(wheel(5));
  expect_error(ExitCode::bad_input, "no recurrent states", [&] {
    state_use(dynamic_cast<LanguageModel&>(*m.network), *data.documents, data.tokenizer, {});
  });
}

TEST(WordGains, AddUpBytesAndMeasureDistances) {
  const auto tokenizer = make_tokenizer("bytes");
  const std::string text = "Ab, cd ab";  // 'ab' begins at 0 and again at 7
  std::vector<int32_t> tokens(text.begin(), text.end());
  std::vector<float> gains(text.size(), 0.0F);
  gains[1] = 0.5F;                    // of the first "ab"
  gains[4] = 1.0F, gains[5] = 2.0F;   // "cd"
  gains[7] = 4.0F, gains[8] = -1.0F;  // "ab" again
  WordGains words(*tokenizer);
  words.add(tokens, gains);
  EXPECT_EQ(words.new_words().count, 2);
  EXPECT_DOUBLE_EQ(words.new_words().sum, 3.5);
  ASSERT_EQ(words.by_distance().size(), 3U);
  EXPECT_EQ(words.by_distance()[2].first, 4);
  EXPECT_EQ(words.by_distance()[2].last, 7);
  EXPECT_EQ(words.by_distance()[2].count, 1);
  EXPECT_DOUBLE_EQ(words.by_distance()[2].sum, 3.0);
  const auto best = words.best(5);
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(best[0].word, "ab");
  EXPECT_EQ(best[0].count, 2);
  EXPECT_DOUBLE_EQ(best[0].bits, 3.5);
  // Another document starts from an empty state.
  words.add(tokens, gains);
  EXPECT_EQ(words.new_words().count, 4);
}

TEST(WordGains, BucketsAreByPowersOfTwo) {
  std::vector<GainBucket> buckets;
  EXPECT_EQ(bucket_of(buckets, 0).last, 1);
  EXPECT_EQ(bucket_of(buckets, 1).last, 1);
  EXPECT_EQ(bucket_of(buckets, 2).first, 2);
  EXPECT_EQ(bucket_of(buckets, 1023).first, 512);
  EXPECT_EQ(bucket_of(buckets, 1024).last, 2047);
  GainBucket b;
  for (const double v : {1.0, 2.0, 3.0}) b.add(v);
  EXPECT_DOUBLE_EQ(b.mean(), 2.0);
  EXPECT_NEAR(b.error(), 1.96 / std::sqrt(3.0), 1e-12);
}

}  // namespace
}  // namespace rondo::test
