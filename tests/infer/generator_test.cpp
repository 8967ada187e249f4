// Generating token by token: equal to the model's forward pass over the whole text, continued from
// a file at any position bit for bit, in memory that does not grow.
#include "rondo/infer/generator.h"

#include "rondo/base/limits.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/support/expect.h"
#include "tests/support/reference.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr int64_t kStart = 7;  // read first when there is no prompt

// Every kind of language model, by name.
std::map<std::string, LanguageModelConfig> writing_models() {
  LanguageModelConfig base;
  base.depth.levels = 3;
  base.time.recurrent_layers = {2};
  base.time.memory_layer = 2;
  base = std::get<LanguageModelConfig>(shrink(ModelConfig{base}).network);
  std::map<std::string, LanguageModelConfig> models;
  const auto add = [&](const std::string& name, const std::string& kind) -> LanguageModelConfig& {
    models[name] = base;
    models[name].time.kind = kind;
    return models[name];
  };
  for (const char* kind : {"none", "window", "memorizing"}) add(kind, kind);
  for (const char* gate : {"fixed", "lstm"}) {
    for (const char* configuration : {"skip", "single", "dual"}) {
      auto& c = add(std::string(gate) + "_" + configuration, "block-recurrent");
      c.time.gate = gate;
      c.time.configuration = configuration;
    }
  }
  add("feedback_fixed_skip", "feedback");
  auto& lstm = add("feedback_lstm_single", "feedback");
  lstm.time.gate = "lstm";
  lstm.time.configuration = "single";
  add("attend_self", "block-recurrent").time.attend_self = true;
  add("mask_empty_cache", "block-recurrent").time.mask_empty_cache = true;
  add("window_masked", "window").time.mask_empty_cache = true;
  add("ring", "block-recurrent").depth.scheme = "ring";
  add("universal_feedback", "feedback").depth.scheme = "universal";
  auto& recursive = add("recursive", "block-recurrent");
  recursive.depth.scheme = "recursive";
  recursive.depth.recursive.blocks = {2};
  recursive.depth.recursive.loops = {2};
  add("two_recurrent_layers", "block-recurrent").time.recurrent_layers = {1, 3};
  add("no_state_ids", "block-recurrent").time.state_ids = false;
  add("not_normalized", "block-recurrent").time.normalize = false;
  add("window_not_normalized", "window").time.normalize = false;
  auto& neither = add("feedback_neither", "feedback");
  neither.time.state_ids = neither.time.normalize = false;
  auto& ring = add("ring_not_normalized", "block-recurrent");
  ring.depth.scheme = "ring";
  ring.time.normalize = false;
  return models;
}

std::vector<std::string> writing_names() {
  std::vector<std::string> names;
  for (const auto& [name, config] : writing_models()) names.push_back(name);
  return names;
}

class Writing : public ::testing::TestWithParam<std::string> {
 protected:
  Writing() : tiny_(ModelConfig{writing_models().at(GetParam())}) {
    model_ = std::dynamic_pointer_cast<LanguageModel>(tiny_.network);
    compiled_ = std::make_shared<CompiledLanguageModel>(model_, kernels::PackedFormat::fp32);
    options_.seed = 11;
  }

  std::vector<int32_t> prompt(int64_t length) const {
    const Tensor t = tiny_inputs(tiny_.config, 1, 5, 100).at("tokens")[0];
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < length; ++i) tokens.push_back(t[i].item<int32_t>());
    return tokens;
  }

  // Generates `count` more tokens, appended to `text`.
  void write(Generator& writer, int64_t count, std::vector<int32_t>& text) const {
    Sampler sampler(options_);
    for (int64_t i = 0; i < count; ++i) {
      text.push_back(static_cast<int32_t>(writer.write(sampler, kStart)));
    }
  }

  // Logits after the last token of `text`, and the state there, by the ordinary forward pass.
  Tensor read_whole(const std::vector<int32_t>& text, State& state) const {
    const at::NoGradGuard no_grad;
    const Tensor tokens = at::tensor(text, at::kInt).to(at::kLong).unsqueeze(0);
    const Tensor logits = model_->forward_tokens(tokens, state, Scope());
    return logits.select(1, tokens.size(1) - 1);
  }

  TinyModel tiny_;
  std::shared_ptr<LanguageModel> model_;
  std::shared_ptr<const CompiledLanguageModel> compiled_;
  SamplerOptions options_;
};

void expect_bits(const State& got, const State& want) {
  ASSERT_EQ(got.tensors().size(), want.tensors().size());
  for (const auto& [name, tensor] : want.tensors()) expect_identical(got.get(name), tensor, name);
}

TEST_P(Writing, IsTheForwardPassOfTheWholeText) {
  for (const int64_t read : {0, 1, 4, 6, 13, 25}) {
    for (int64_t written = read == 0 ? 1 : 0; written <= 14; ++written) {
      SCOPED_TRACE(std::to_string(read) + " read, " + std::to_string(written) + " written");
      std::vector<int32_t> text = prompt(read);
      Generator writer(compiled_);
      writer.read(text);
      if (read == 0) text.push_back(kStart);
      write(writer, written, text);
      const State got = writer.state();
      EXPECT_EQ(writer.position(), static_cast<int64_t>(text.size()));
      State want;
      expect_near(got.get("logits"), read_whole(text, want), 1e-5, "logits");
      ASSERT_EQ(got.tensors().size(), want.tensors().size() + 2) << "logits, recent";
      for (const auto& [name, tensor] : want.tensors()) {
        ASSERT_EQ(got.get(name).sizes(), tensor.sizes()) << name;
        if (tensor.numel() > 0) expect_near(got.get(name), tensor, 1e-5, name);
      }
    }
  }
}

TEST_P(Writing, PicksWhatTheSamplerPicksOfTheLogits) {
  Sampler sampler(options_);
  for (int64_t i = 0; i < 9; ++i) {
    std::vector<int32_t> text = prompt(6);
    Generator writer(compiled_);
    writer.read(text);
    write(writer, i, text);
    const Tensor logits = writer.state().get("logits").contiguous();
    const std::vector<float> row(logits.data_ptr<float>(),
                                 logits.data_ptr<float>() + logits.numel());
    write(writer, 1, text);
    EXPECT_EQ(text.back(), sampler.sample(row, static_cast<uint64_t>(6 + i))) << i;
  }
}

// Any position: after any number of tokens read or generated, inside a block or between two.
TEST_P(Writing, ContinuedFromAFileIsAsIfItHadNotStopped) {
  constexpr int64_t kWritten = 18;
  for (const int64_t read : {0, 5, 8}) {
    std::vector<int32_t> text = prompt(read);
    Generator uninterrupted(compiled_);
    uninterrupted.read(text);
    write(uninterrupted, kWritten, text);
    const State end = uninterrupted.state();
    for (const int64_t stop : {0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 17}) {
      if (read + stop == 0) continue;
      SCOPED_TRACE(std::to_string(read) + " read, stopped after " + std::to_string(stop));
      std::vector<int32_t> parts = prompt(read);
      const TemporaryFile file(".state");
      {
        Generator first(compiled_);
        first.read(parts);
        write(first, stop, parts);
        first.state().save(file.path(), "me");
      }
      Generator second(compiled_, model_->load_state(file.path(), "me", 1));
      write(second, kWritten - stop, parts);
      EXPECT_EQ(parts, text);
      expect_bits(second.state(), end);
    }
  }
}

// Tokens read or generated before the file was saved are as recent as those after it.
TEST_P(Writing, ARepetitionPenaltyGoesOnAcrossAFile) {
  options_.repetition_penalty = 3.0;
  options_.repetition_window = 9;
  options_.temperature = 0.3;
  const auto remembering = [&](Generator& writer, int64_t count, std::vector<int32_t>& text) {
    Sampler sampler(options_);
    for (const int64_t token : writer.recent()) sampler.remember(token);
    for (int64_t i = 0; i < count; ++i) {
      text.push_back(static_cast<int32_t>(writer.write(sampler, kStart)));
    }
  };
  const std::vector<int32_t> begun = prompt(5);
  std::vector<int32_t> whole = begun;
  Generator uninterrupted(compiled_);
  uninterrupted.read(begun);
  remembering(uninterrupted, 20, whole);
  for (const int64_t stop : {0, 1, 6, 13}) {
    std::vector<int32_t> parts = begun;
    Generator first(compiled_);
    first.read(begun);
    remembering(first, stop, parts);
    const TemporaryFile file(".state");
    first.state().save(file.path(), "me");
    Generator second(compiled_, model_->load_state(file.path(), "me", 1));
    remembering(second, 20 - stop, parts);
    EXPECT_EQ(parts, whole) << stop;
    expect_bits(second.state(), uninterrupted.state());
  }
}

TEST_P(Writing, OneStateMayBeContinuedTwice) {
  std::vector<int32_t> text = prompt(9);
  Generator writer(compiled_);
  writer.read(text);
  const State fork = writer.state();
  std::vector<int32_t> one;
  std::vector<int32_t> two;
  Generator first(compiled_, fork);
  write(first, 13, one);
  Generator second(compiled_, fork);
  write(second, 13, two);
  EXPECT_EQ(one, two);
  expect_bits(first.state(), second.state());
  expect_bits(writer.state(), fork);
}

// Compiled steps and the forward pass of training, thread by thread.
TEST_P(Writing, CompiledAgreesWithPlainStepsOnAnyNumberOfThreads) {
  const auto logits_after = [&](int64_t count) {
    std::vector<int32_t> text = prompt(5);
    Generator writer(compiled_);
    writer.read(text);
    Sampler greedy{[] {
      SamplerOptions o;
      o.temperature = 0.0;
      return o;
    }()};
    for (int64_t i = 0; i < count; ++i) writer.write(greedy, kStart);
    return writer.state().get("logits");
  };
  constexpr int64_t kCount = 30;  // the number of threads is chosen by trials in these
  Runtime::get().use_threads(2);
  const Tensor by_two = logits_after(kCount);
  Runtime::get().use_threads(1);
  expect_identical(logits_after(kCount), by_two);
  Runtime::get().use_threads(2);
  const PlainKernels plain;
  expect_near(by_two, logits_after(kCount), 1e-5);
}

// Fewer bits: as close to the fp32 logits as the number of bits implies.
TEST_P(Writing, WithWeightsInFewerBitsStaysClose) {
  const auto logits_with = [&](kernels::PackedFormat format) {
    Session session(std::make_shared<CompiledLanguageModel>(model_, format));
    const Session::RowId row = session.add();
    for (const int32_t token : prompt(9)) session.step({{row, token}});
    return at::tensor(session.logits(row));
  };
  const Tensor exact = logits_with(kernels::PackedFormat::fp32);
  for (const auto format : {kernels::PackedFormat::bf16, kernels::PackedFormat::int8}) {
    const Tensor near = logits_with(format);
    const double off = (near - exact).norm().item<double>() / exact.norm().item<double>();
    EXPECT_LT(off, 0.1);
    EXPECT_GT(off, 0.0);
  }
}

TEST_P(Writing, ReadsInPiecesAndBetweenTokens) {
  const std::vector<int32_t> all = prompt(60);
  std::vector<int32_t> text;
  Generator writer(compiled_);
  const auto read = [&](int64_t first, int64_t count) {
    const std::vector<int32_t> piece(all.begin() + first, all.begin() + first + count);
    writer.read(piece);
    text.insert(text.end(), piece.begin(), piece.end());
  };
  read(0, 3);
  read(3, 0);
  read(3, 10);
  write(writer, 5, text);
  read(20, 1);
  write(writer, 1, text);
  read(30, 27);
  State want;
  expect_near(writer.state().get("logits"), read_whole(text, want), 1e-5);
  EXPECT_EQ(writer.position(), static_cast<int64_t>(text.size()));
}

INSTANTIATE_TEST_SUITE_P(Models, Writing, ::testing::ValuesIn(writing_names()),
                         [](const auto& given) { return given.param; });

// ---- memory -----------------------------------------------------------------------------------

TEST(WritingMemory, OfASessionNeverGrows) {
  for (const auto& [name, config] : writing_models()) {
    if (config.time.kind == "none") continue;  // sees all tokens: memory must grow
    const TinyModel tiny(ModelConfig{config});
    Session session(std::make_shared<CompiledLanguageModel>(
        std::dynamic_pointer_cast<LanguageModel>(tiny.network), kernels::PackedFormat::fp32));
    const Session::RowId row = session.add();
    const int64_t window = config.time.window;
    for (int64_t i = 0; i < window; ++i) session.step({{row, i}});
    const int64_t bytes = session.bytes();
    EXPECT_GT(bytes, 0);
    for (int64_t i = 0; i < 10 * window; ++i) {
      session.step({{row, i % 40}});
      ASSERT_EQ(session.bytes(), bytes) << name << " after " << i;
    }
  }
}

TEST(WritingMemory, OfAStateIsTheSameAfterAnyNumberOfWindows) {
  for (const auto& [name, config] : writing_models()) {
    if (config.time.kind == "none") continue;  // sees all tokens: memory must grow
    const TinyModel tiny(ModelConfig{config});
    Generator writer(std::make_shared<CompiledLanguageModel>(
        std::dynamic_pointer_cast<LanguageModel>(tiny.network), kernels::PackedFormat::fp32));
    Sampler sampler{SamplerOptions()};
    for (int64_t i = 0; i < 5 * config.time.window + 1; ++i) writer.write(sampler, kStart);
    const auto network_bytes = [&] { return writer.state().without("recent").bytes(); };
    const int64_t bytes = network_bytes();
    for (int64_t i = 0; i < 10 * config.time.window; ++i) writer.write(sampler, kStart);
    EXPECT_EQ(network_bytes(), bytes) << name;
  }
}

TEST(WritingMemory, OfRecentTokensIsBounded) {
  RecentTokens recent;
  for (int64_t i = 0; i < 3 * kMaxRepetitionWindow; ++i) recent.add(i);
  State state;
  recent.keep_in(state);
  const Tensor kept = state.get(RecentTokens::kName);
  expect_identical(kept[0],
                   at::arange(2 * kMaxRepetitionWindow, 3 * kMaxRepetitionWindow, at::kLong));
  EXPECT_EQ(RecentTokens(state).tokens(), recent.tokens());
  EXPECT_TRUE(RecentTokens(State()).tokens().empty());
}

}  // namespace
}  // namespace rondo::test
