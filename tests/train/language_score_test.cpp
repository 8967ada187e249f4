// Bits per token and byte, word perplexity and the loss by position against plain sums; continuing
// from a state.
#include "rondo/train/language_score.h"

#include "rondo/infer/generator.h"
#include "tests/support/shrink.h"
#include "tests/train/plain_reader.h"

namespace rondo::test {
namespace {

const std::vector<std::string> kScoredTexts = {"one two  three\nfour",
                                               "x",
                                               "a",
                                               std::string(100, 'q'),
                                               "the last of them, with some words",
                                               "twelve chars",
                                               "thirteen chars"};

// Documents and an untrained model that gives every token a different loss.
struct ScoredText {
  explicit ScoredText(const std::string& kind, const std::vector<std::string>& texts = kScoredTexts,
                      const std::string& tokenizer_spec = "bytes")
      : fixture(std::vector<int64_t>{}), tokenizer(make_tokenizer(tokenizer_spec)) {
    for (size_t i = 0; i < texts.size(); ++i) fixture.write(i, texts[i]);
    LanguageModelConfig config = tiny_language(kind);
    config.vocabulary = tokenizer->vocabulary();
    model = std::make_shared<LanguageModel>(config);
    nn::initialize(*model, 5);
    model->eval();
    documents = std::make_unique<Documents>(
        Documents::open({fixture.texts(), fixture.cache()}, *tokenizer));
  }
  LanguageScore score(int64_t rows, int64_t max_tokens = 0) {
    return score_documents(*model, *documents, {rows, 12, max_tokens, false});
  }

  TrainingFixture fixture;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<LanguageModel> model;
  std::unique_ptr<Documents> documents;
};

struct PlainSums {
  double nats = 0, tokens = 0, bytes = 0, words = 0;
  std::map<size_t, LanguageScore::Bucket> by_position;
};

PlainSums plain_sums(ScoredText& text) {
  PlainSums sums;
  PlainReader plain(*text.model, *text.documents);
  for (int64_t d = 0; d < text.documents->count(); ++d) {
    const std::vector<double> nats = plain.nats(d);
    if (nats.empty()) continue;
    sums.bytes += static_cast<double>(text.documents->document(d).bytes);
    sums.words += static_cast<double>(text.documents->document(d).words);
    for (size_t i = 0; i < nats.size(); ++i) {
      sums.nats += nats[i];
      sums.tokens += 1;
      const auto bucket = static_cast<size_t>(std::floor(std::log2(static_cast<double>(i + 1))));
      sums.by_position[bucket].nats += nats[i];
      ++sums.by_position[bucket].tokens;
    }
  }
  return sums;
}

void expect_plain(ScoredText& text, int64_t rows) {
  const PlainSums want = plain_sums(text);
  const LanguageScore got = text.score(rows);
  EXPECT_EQ(static_cast<double>(got.tokens), want.tokens);
  EXPECT_NEAR(got.nats, want.nats, 1e-5 * want.tokens);
  EXPECT_NEAR(got.bits_per_token(), want.nats / want.tokens / std::log(2.0), 2e-5);
  EXPECT_NEAR(got.bits_per_byte(), want.nats / want.bytes / std::log(2.0), 2e-5);
  const double perplexity = std::exp(want.nats / want.words);
  EXPECT_NEAR(got.word_perplexity() / perplexity, 1.0, 1e-3);
  EXPECT_GT(got.seconds, 0.0);
  LanguageScore::Bucket sum;
  for (size_t k = 0; k < got.by_position.size(); ++k) {
    sum.nats += got.by_position[k].nats;
    sum.tokens += got.by_position[k].tokens;
    const auto found = want.by_position.find(k);
    ASSERT_EQ(got.by_position[k].tokens,
              found == want.by_position.end() ? 0 : found->second.tokens);
    if (found != want.by_position.end()) {
      EXPECT_NEAR(got.by_position[k].nats, found->second.nats, 1e-3);
    }
  }
  EXPECT_EQ(sum.tokens, got.tokens);
  EXPECT_NEAR(sum.nats, got.nats, 1e-6 * got.nats);
}

TEST(LanguageScores, AreThePlainSumsWhateverTheRows) {
  for (const char* kind : {"none", "window", "block-recurrent", "feedback", "memorizing"}) {
    ScoredText text(kind);
    for (const int64_t rows : {1, 2, 5}) {
      SCOPED_TRACE(std::string(kind) + " in " + std::to_string(rows) + " rows");
      expect_plain(text, rows);
    }
  }
}

TEST(LanguageScores, CountBytesAndWordsOfTheText) {
  ScoredText text("window");
  const LanguageScore got = text.score(3);
  EXPECT_NEAR(got.bytes, 19 + 100 + 33 + 12 + 14,
              1e-9);  // two documents of one byte give nothing to score
  EXPECT_NEAR(got.words, 4 + 1 + 7 + 2 + 2, 1e-9);
  EXPECT_EQ(got.tokens, 19 + 100 + 33 + 12 + 14 - 5);
}

TEST(LanguageScores, OfPiecesCountBytesToo) {
  const testing::TempDir folder;
  std::string sample;
  for (int i = 0; i < 200; ++i) sample += "the last of them and one two three words again\n";
  testing::spill(folder.file("sample.txt"), sample);
  TokenizerTraining training;
  training.sources = {folder.file("sample.txt")};
  training.output = folder.file("small.model");
  training.vocabulary = 300;
  {
    const QuietLog quiet;
    train_tokenizer(training);
  }
  ScoredText text("block-recurrent", {sample.substr(0, 141), "the words of three\n"},
                  training.output);
  const LanguageScore got = text.score(2);
  EXPECT_NEAR(got.bytes, 141 + 19, 1e-9);
  EXPECT_LT(static_cast<double>(got.tokens), got.bytes / 2);
  expect_plain(text, 2);
}

TEST(LanguageScores, StopAfterEnoughTokens) {
  ScoredText text("block-recurrent");
  const LanguageScore some = text.score(2, 30);
  EXPECT_GE(some.tokens, 30);
  EXPECT_LT(some.tokens, 30 + 2 * 12);
  EXPECT_LT(some.bytes, 100.0);
}

// ---- from a state, to a state -----------------------------------------------------------------

class ScoreFromState : public ::testing::TestWithParam<const char*> {};

// What came before is the beginning of the document; the resulting state continues it, also inside
// a block.
TEST_P(ScoreFromState, IsTheScoreOfTheRestOfALongerText) {
  const std::string before = "what came before, ";  // 18: inside a block of 4
  const std::string rest = "and the rest of it, of 33 letters";
  ScoredText text(GetParam(), {rest});
  const auto compiled =
      std::make_shared<CompiledLanguageModel>(text.model, kernels::PackedFormat::fp32);
  Generator writer(compiled);
  writer.read(text.tokenizer->encode(before));
  State state = writer.state();
  const LanguageScore got =
      score_documents(*text.model, *text.documents, {1, 12, 0, false}, &state);

  const std::vector<int32_t> all = text.tokenizer->encode(before + rest);
  const Tensor tokens = at::tensor(all, at::kInt).to(at::kLong).unsqueeze(0);
  State whole;
  const std::vector<double> nats = PlainReader(*text.model, *text.documents).nats_of(tokens, whole);
  double want = 0;  // of all tokens after the rest's first
  for (size_t i = before.size(); i < nats.size(); ++i) want += nats[i];
  EXPECT_EQ(got.tokens, static_cast<int64_t>(rest.size()) - 1);
  EXPECT_NEAR(got.nats, want, 1e-4);
  ASSERT_EQ(state.tensors().size(), whole.tensors().size() + 2) << "logits, recent";
  expect_identical(state.get("recent"), tokens);
  for (const auto& [name, tensor] : whole.tensors()) {
    expect_near(state.get(name), tensor, 1e-5, name);
  }

  // Generation continues from it as from the text itself.
  Sampler greedy(SamplerOptions{0.0, 0, 1.0, 1.0, 64, 1});
  Generator from_state(compiled, state);
  Generator from_text(compiled);
  from_text.read(all);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(from_state.write(greedy, 10), from_text.write(greedy, 10));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ScoreFromState,
                         ::testing::Values("none", "window", "block-recurrent", "feedback",
                                           "memorizing"),
                         [](const auto& given) { return test_name(given.param); });

TEST(ScoreToState, IsOfTheLastDocumentAlone) {
  ScoredText text("block-recurrent");
  State state;
  const LanguageScore all =
      score_documents(*text.model, *text.documents, {1, 12, 0, false}, &state);
  EXPECT_NEAR(all.nats, text.score(4).nats, 1e-3);
  PlainReader plain(*text.model, *text.documents);
  const int64_t last = text.documents->count() - 1;
  const State alone = plain.state_after(last, text.documents->document(last).tokens);
  for (const auto& [name, tensor] : alone.tensors()) {
    if (name.find("keys") == std::string::npos && name.find("values") == std::string::npos) {
      expect_near(state.get(name), tensor, 1e-5, name);
    }
  }
}

}  // namespace
}  // namespace rondo::test
