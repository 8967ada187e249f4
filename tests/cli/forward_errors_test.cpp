// rondo forward with unusable inputs: one clear message, the right exit code, nothing written.
#include "tests/cli/authors.h"

namespace rondo::testing {
namespace {

class ForwardErrors : public ::testing::Test {
 protected:
  // Runs `model` (random weights) on `inputs`; no output may be created.
  Result forward(const std::string& model, const Arrays& inputs, const Arguments& more = {}) {
    write_arrays(folder_.file("in.safetensors"), inputs);
    Arguments arguments = {"forward",  model,
                           "--input",  folder_.file("in.safetensors"),
                           "--output", folder_.file("out.safetensors")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Result result = rondo(arguments);
    EXPECT_FALSE(std::filesystem::exists(folder_.file("out.safetensors"))) << result.err;
    return result;
  }
  void refused(const std::string& model, const Arrays& inputs, const std::string& part) {
    expect_refusal(forward(model, inputs), ExitCode::bad_input, part);
  }

  const std::string vision_ = fixture("ringformer_vision.toml");
  const std::string translation_ = fixture("ringformer_translation.toml");
  const std::string lm_ = fixture("brt_fixed_skip.toml");
  const std::string sret_ = fixture("sret_mini.toml");
  TempDir folder_;
};

TEST_F(ForwardErrors, MissingInputs) {
  refused(vision_, {{"pixels", ramp({1, 3, 32, 32})}}, "inputs: tensor 'images' is missing");
  refused(translation_, {{"source", whole({1, 2}, {1, 2})}}, "inputs: tensor 'target' is missing");
  refused(lm_, {{"text", whole({1, 2}, {1, 2})}}, "inputs: tensor 'tokens' is missing");
}

TEST_F(ForwardErrors, WrongTypes) {
  refused(vision_, {{"images", whole({1, 1, 1, 1}, {1})}}, "inputs: images: expected Float");
  refused(lm_, {{"tokens", ramp({1, 4})}}, "inputs: tokens: expected Long");
  refused(lm_, {{"tokens", whole({1, 2}, {1, 2})}, {"reset", whole({1}, {1})}},
          "inputs: reset: expected Bool");
  refused(vision_, {{"images", ramp({1, 3, 32, 32})}, {"labels", ramp({1})}},
          "inputs: labels: expected Long");
}

TEST_F(ForwardErrors, WrongShapes) {
  refused(vision_, {{"images", ramp({1, 3, 32, 40})}},
          "expected [B, 3, 32, 32], got [1, 3, 32, 40]");
  refused(vision_, {{"images", ramp({3, 32, 32})}},
          "inputs: images: expected Float with 4 dimensions");
  refused(lm_, {{"tokens", whole({3}, {1, 2, 3})}},
          "inputs: tokens: expected Long with 2 dimensions");
  refused(lm_, {{"tokens", whole({1, 0}, {})}}, "inputs: tokens: expected 1 or more tokens");
  refused(lm_,
          {{"tokens", whole({1, 2}, {1, 2})},
           {"reset", make_array<uint8_t>(DType::boolean, {2}, {0, 1})}},
          "inputs: reset: expected 1 rows, got 2");
  refused(translation_, {{"source", whole({1, 2}, {1, 2})}, {"target", whole({2, 1}, {1, 2})}},
          "inputs: target: expected 1 rows, as in source, got 2");
}

TEST_F(ForwardErrors, ValuesOutOfRange) {
  refused(lm_, {{"tokens", whole({1, 3}, {0, 60, 61})}},
          "inputs: tokens: expected tokens from 0 to 60, got 61");
  refused(lm_, {{"tokens", whole({1, 2}, {-1, 5})}}, "expected tokens from 0 to 60, got -1");
  refused(translation_, {{"source", whole({1, 1}, {37})}, {"target", whole({1, 1}, {1})}},
          "inputs: source: expected tokens from 0 to 36, got 37");
  refused(vision_, {{"images", ramp({1, 3, 32, 32})}, {"labels", whole({1}, {10})}},
          "inputs: labels: expected values below 10, got 10");
}

TEST_F(ForwardErrors, LabelsThatDoNotStandBesideTheLogits) {
  refused(vision_, {{"images", ramp({1, 3, 32, 32})}, {"labels", whole({2}, {1, 2})}},
          "inputs: labels: expected [1], one per row of logits, got [2]");
  refused(lm_, {{"tokens", whole({1, 3}, {1, 2, 3})}, {"labels", whole({1, 2}, {2, 3})}},
          "inputs: labels: expected [1, 3], one per row of logits, got [1, 2]");
  refused(translation_,
          {{"source", whole({1, 2}, {1, 2})},
           {"target", whole({1, 2}, {1, 2})},
           {"labels", whole({2}, {1, 2})}},
          "inputs: labels: expected Long with 2 dimensions");
}

TEST_F(ForwardErrors, Permutations) {
  Arrays inputs = {{"images", ramp({1, 3, 64, 64})}, {"permutation.0", whole({3}, {2, 1, 0})}};
  refused(sret_, inputs, "permutation.0: expected a permutation of 64 tokens");
  std::vector<int64_t> twice(64, 0);
  inputs["permutation.0"] = whole({64}, twice);
  refused(sret_, inputs, "repeated or missing numbers");
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 64; ++i) order.push_back(i);
  inputs["permutation.0"] = whole({64}, order);
  refused(sret_, inputs, "permutation.1: missing; 1 were given");
}

TEST_F(ForwardErrors, SizesThatDoNotFit) {
  const Arrays images = {{"images", ramp({1, 3, 32, 32})}};
  const auto with = [&](const std::string& model, const char* set, const char* part) {
    expect_refusal(forward(model, images, {"--set", set}), ExitCode::bad_input, part);
  };
  with(vision_, "model.patch=7", "expected a multiple of the patch 7, got 32");
  with(sret_, "model.image=40", "25 tokens cannot be cut into 8 equal groups");
  with(lm_, "model.time.recurrent_layers=[5]", "expected a layer from 1 to 4, got 5");
}

TEST_F(ForwardErrors, ProbesThatMatchNothing) {
  const Arrays images = {{"images", ramp({1, 3, 32, 32})}};
  expect_refusal(forward(vision_, images, {"--probe", "encodde"}), ExitCode::usage,
                 "--probe 'encodde' matches no activation\n  did you mean 'encoded'?");
  expect_refusal(forward(vision_, images, {"--probe", "*zzz*"}), ExitCode::usage,
                 "--probe '*zzz*' matches no activation");
  expect_refusal(forward(vision_, images, {"--probe", "encoded", "--probe", "zzz"}),
                 ExitCode::usage, "--probe 'zzz' matches no activation");
}

TEST_F(ForwardErrors, StatesOfModelsWithoutOne) {
  const Arrays images = {{"images", ramp({1, 3, 32, 32})}};
  expect_refusal(forward(vision_, images, {"--state-out", folder_.file("s")}), ExitCode::usage,
                 "only language models carry a state");
  EXPECT_FALSE(std::filesystem::exists(folder_.file("s")));
}

TEST_F(ForwardErrors, WeightsOfAnotherModel) {
  const Authors other("brt_slide", "meliad");
  const Arrays tokens = {{"tokens", whole({1, 2}, {1, 2})}};
  const Result result = forward(lm_, tokens, {"--weights", other.model()});
  expect_refusal(result, ExitCode::bad_input, "weights do not match the model");
  EXPECT_TRUE(contains(result.err, "missing: stack.mixing.1.initial")) << result.err;
  expect_refusal(forward(lm_, tokens, {"--weights", fixture("t5_buckets.safetensors")}),
                 ExitCode::bad_input, "weights do not match the model");
  // Weights without a configuration are not a model.
  expect_refusal(forward(fixture("t5_buckets.safetensors"), tokens), ExitCode::bad_input,
                 "contains weights but no configuration");
}

TEST_F(ForwardErrors, FilesThatCannotBeReadOrWritten) {
  const Arrays tokens = {{"tokens", whole({1, 2}, {1, 2})}};
  const std::string in = folder_.file("in.safetensors");
  write_arrays(in, tokens);
  const auto run = [&](const std::string& inputs, const std::string& outputs,
                       const Arguments& more = {}) {
    Arguments arguments = {"forward", lm_, "--input", inputs, "--output", outputs};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return rondo(arguments);
  };
  const std::string out = folder_.file("out.safetensors");
  expect_refusal(run("nowhere.safetensors", out), ExitCode::io, "nowhere.safetensors: cannot open");
  expect_refusal(run(folder_.path(), out), ExitCode::io, folder_.path());
  expect_refusal(run(in, folder_.file("no/out")), ExitCode::io, "no/out");
  expect_refusal(run(in, "/dev/full"), ExitCode::io, "No space left on device");
  expect_refusal(run(in, out, {"--weights", "nowhere.safetensors"}), ExitCode::io,
                 "nowhere.safetensors");
  const std::string whole_file = slurp(in);
  spill(in, whole_file.substr(0, whole_file.size() - 8));
  expect_refusal(run(in, out), ExitCode::bad_input, "in.safetensors");
  spill(in, "this is not a safetensors file at all");
  expect_refusal(run(in, out), ExitCode::bad_input, "in.safetensors");
}

}  // namespace
}  // namespace rondo::testing
