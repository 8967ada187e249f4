// The two variants of docs/adding_a_variant.md, added to the library as described there: they
// train, carry a state, compile for decoding, and reject invalid settings.
#include "examples/variants/running_mean.h"
#include "examples/variants/sandwich.h"
#include "tests/support/guarded_model.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

using example::make_running_mean;
using example::running_mean_kind;
using example::sandwich_scheme;

LanguageModelConfig three_levels(const std::string& scheme, const std::string& kind) {
  LanguageModelConfig c;
  c.depth.scheme = scheme;
  c.depth.levels = 3;
  c.depth.recursive.blocks = {2};
  c.depth.recursive.loops = {2};
  c.depth.ring.attention = "none";
  c.time.kind = kind;
  c.time.recurrent_layers = {2};
  c.time.memory_layer = 2;
  return std::get<LanguageModelConfig>(shrink(ModelConfig{c}).network);
}

ModelConfig read_language_model(const std::string& depth, const std::string& time) {
  return read_model_config(ConfigTable::from_string(
      "[model]\nkind = 'language-model'\n[model.depth]\n" + depth + "[model.time]\n" + time,
      "mine.toml"));
}

// ---- a kind of time

TEST(AddedKindOfTime, GeneratesWhatTheTrainedNetworkWould) {
  const TimeKindRegistration running_mean(running_mean_kind(), make_running_mean);
  for (const std::string& scheme : depth_scheme_names()) {
    SCOPED_TRACE(scheme);
    const GuardedModel model(three_levels(scheme, "running-mean"));
    for (const int64_t rows : {1, 3, 8}) model.check(rows);
  }
}

TEST(AddedKindOfTime, TrainsAndContinuesWhereItStopped) {
  const TimeKindRegistration running_mean(running_mean_kind(), make_running_mean);
  const TrainingFixture fixture;
  RunConfig config = tiny_run(fixture, "running-mean");
  LanguageTask untrained(config, fixture.cache());
  const Checkpoint whole = trained(fixture, config, "whole");
  const NamedTensors weights = whole.below("weight.");
  for (const char* name : {"stack.mixing.0.value.weight", "stack.mixing.1.output.weight"}) {
    EXPECT_FALSE(weights.at(name).equal(named_tensors(untrained.network()).at(name))) << name;
  }
  config.train.steps = 3;
  trained(fixture, config, "parts");
  config.train.steps = 6;
  const Checkpoint parts = trained(fixture, config, "parts");
  expect_identical_tensors(weights, parts.below("weight."));
  EXPECT_EQ(whole.below("carried.").count("level.1.sum"), 1U);
  expect_identical_tensors(whole.below("carried."), parts.below("carried."));
}

TEST(AddedKindOfTime, RowsBeginAnewWhereTheyAreReset) {
  const at::NoGradGuard no_grad;
  const TimeKindRegistration running_mean(running_mean_kind(), make_running_mean);
  const TinyModel tiny(ModelConfig{three_levels("vanilla", "running-mean")});
  auto& model = dynamic_cast<LanguageModel&>(*tiny.network);
  const Tensor tokens = tiny_inputs(tiny.config, 2, 3, 9).at("tokens");  // [2, 9]
  const Tensor head = tokens.narrow(1, 0, 5);
  const Tensor tail = tokens.narrow(1, 5, 4);
  State state, empty;
  model.forward_tokens(head, state, Scope());
  state = state.reset(at::tensor(std::vector<int64_t>{0, 1}).to(at::kBool));
  const Tensor got = model.forward_tokens(tail, state, Scope());
  expect_near(got[0], tiny.logits({{"tokens", tokens}})[0].narrow(0, 5, 4), 1e-5, "read on");
  expect_near(got[1], model.forward_tokens(tail, empty, Scope())[1], 1e-6, "begun anew");
}

TEST(AddedKindOfTime, RefusesWhatHasNoMeaning) {
  const TimeKindRegistration running_mean(running_mean_kind(), make_running_mean);
  EXPECT_NO_THROW(read_language_model("", "kind = 'running-mean'\nsegment = 1000\n"));
  expect_error(ExitCode::bad_input,
               "mine.toml: model.depth.ring.attention: a running mean has no queries and keys",
               [] { read_language_model("scheme = 'ring'\n", "kind = 'running-mean'\n"); });
  LanguageModelConfig ring = three_levels("ring", "running-mean");
  ring.depth.ring.attention = "after";
  expect_error(ExitCode::bad_input, "a running mean has no queries and keys",
               [&] { build_network(ModelConfig{ring}); });

  const testing::TempDir folder;
  const TinyModel tiny(ModelConfig{three_levels("vanilla", "running-mean")});
  auto& model = dynamic_cast<LanguageModel&>(*tiny.network);
  State state;
  model.forward_tokens(tiny_inputs(tiny.config, 1, 3).at("tokens"), state, Scope());
  state.set("level.1.sum", at::zeros({1, 3}));
  state.save(folder.file("state"), "mine");
  expect_error(ExitCode::bad_input, "level.1.sum: expected F32 [1, ",
               [&] { model.load_state(folder.file("state"), "mine", 1); });
}

TEST(AddedKindOfTime, IsKnownOnlyWhileItIsRegistered) {
  const auto read = [] { read_language_model("", "kind = 'running-mean'\n"); };
  const LanguageModelConfig config = three_levels("vanilla", "window");
  expect_error(ExitCode::bad_input, "running-mean", read);
  {
    const TimeKindRegistration running_mean(running_mean_kind(), make_running_mean);
    EXPECT_NO_THROW(read());
    expect_error(ExitCode::bad_input, "\"running-mean\"",
                 [] { read_language_model("", "kind = 'running-men'\n"); });
    expect_error(ExitCode::failure, "model.time.kind: the name 'running-mean' is taken",
                 [] { TimeKindRegistration(running_mean_kind(), make_running_mean); });
  }
  expect_error(ExitCode::bad_input, "mine.toml", read);
  LanguageModelConfig unknown = config;
  unknown.time.kind = "running-mean";
  expect_error(ExitCode::bad_input, "model.time.kind: unknown name 'running-mean'",
               [&] { build_network(ModelConfig{unknown}); });
}

TEST(KindsOfTime, HaveTwoHalvesOfTheSameNames) {
  EXPECT_EQ(time_kinds().names(), time_mixings().names());
  EXPECT_EQ(time_kind_names(), time_kinds().names());
}

// ---- a depth scheme

TEST(AddedScheme, SharesAsItsPlanSays) {
  const Registration<DepthScheme> sandwich(depth_schemes(), sandwich_scheme());
  DepthConfig depth;
  depth.scheme = "sandwich";
  depth.levels = 5;
  const DepthPlan plan = make_plan(depth, PlanShape{});
  std::vector<int64_t> mixings;
  for (const Level& level : plan.levels) mixings.push_back(level.mixing);
  EXPECT_EQ(mixings, (std::vector<int64_t>{0, 1, 1, 1, 2}));
  EXPECT_EQ(plan.norms(), 10);
}

TEST(AddedScheme, GeneratesWhatTheTrainedNetworkWould) {
  const Registration<DepthScheme> sandwich(depth_schemes(), sandwich_scheme());
  const TimeKindRegistration running_mean(running_mean_kind(), make_running_mean);
  for (const std::string& kind : time_kind_names()) {
    SCOPED_TRACE(kind);
    LanguageModelConfig config = three_levels("sandwich", kind);
    config.depth.levels = 5;
    const GuardedModel model(config);
    for (const int64_t rows : {1, 3}) model.check(rows);
  }
}

TEST(AddedScheme, RefusesWhatHasNoMeaning) {
  const Registration<DepthScheme> sandwich(depth_schemes(), sandwich_scheme());
  expect_error(ExitCode::bad_input,
               "mine.toml: model.depth.levels: a sandwich has at least 3 levels, got 2",
               [] { read_language_model("scheme = 'sandwich'\nlevels = 2\n", ""); });
  expect_error(ExitCode::bad_input, "'sandwich' is not supported in a pyramid", [] {
    read_model_config(ConfigTable::from_string(
        "[model]\nkind = 'pyramid'\n[model.depth]\nscheme = 'sandwich'\n", "mine.toml"));
  });
}

}  // namespace
}  // namespace rondo::test
