// rondo forward on text: the authors' translation model, and their language models over three
// segments, with the state passed from process to process in a file.
#include "tests/cli/authors.h"

namespace rondo::testing {
namespace {

// For each row, the token that follows each token; `last` where there is none.
Array next_tokens(const Array& tokens, int64_t last) {
  const std::vector<double> values = tokens.numbers();
  const auto width = static_cast<size_t>(tokens.shape.at(1));
  std::vector<int64_t> labels;
  for (size_t i = 0; i < values.size(); ++i) {
    labels.push_back((i + 1) % width == 0 ? last : static_cast<int64_t>(values[i + 1]));
  }
  return whole(tokens.shape, labels);
}

// Columns first … first + count of a [rows, n] array.
Array columns(const Array& array, int64_t first, int64_t count) {
  Array part = array;
  part.shape[1] = count;
  part.bytes.clear();
  const int64_t row = array.shape[1] * dtype_size(array.dtype);
  for (int64_t r = 0; r < array.shape[0]; ++r) {
    const auto begin = array.bytes.begin() + r * row + first * dtype_size(array.dtype);
    part.bytes.insert(part.bytes.end(), begin, begin + count * dtype_size(array.dtype));
  }
  return part;
}

TEST(ForwardTranslation, LogitsLossAndGradients) {
  const Authors m("ringformer_translation", "ringformer");
  Arrays inputs = {{"source", m["src"]}, {"target", m["trg"]}};
  const Arrays plain = m.forward(inputs);
  EXPECT_LE(max_difference(plain.at("logits"), m["logits"]), kLogitsTolerance);
  EXPECT_EQ(plain.size(), 1u);
  inputs["labels"] = next_tokens(m["trg"], 0);  // 0 is padding: not scored
  const Arrays out = m.forward(inputs, {"--gradients"});
  EXPECT_LE(max_difference(out.at("logits"), m["logits"]), kLogitsTolerance);
  EXPECT_LE(max_difference(out.at("loss"), m["loss"]), kLogitsTolerance);
  m.expect_gradients(out, "g/");
}

class LanguageModels : public ::testing::TestWithParam<const char*> {};

// Our "level.1.keys" as their cache calls it.
std::string cached_name(const std::string& step, const std::string& ours) {
  const std::string level = ours.substr(6, 1);
  const std::string kind = ours.substr(8);
  return step + "/state/decoder/transformer" + level + "/" +
         (kind == "state" ? "recurrent_state" : "previous_" + kind) + "_test";
}

TEST_P(LanguageModels, ThreeSegmentsThroughStateFiles) {
  const Authors m(GetParam(), "meliad");
  std::string before;
  for (const std::string step : {"step1", "step2", "step3"}) {
    Arrays inputs = {{"tokens", m[step + "/tokens"]}, {"reset", m[step + "/start_of_sequence"]}};
    inputs["labels"] = next_tokens(inputs["tokens"], -1);  // below 0: not scored
    Arguments options = {"--gradients", "--state-out", m.file(step + ".state")};
    if (!before.empty()) options.insert(options.end(), {"--state-in", before});
    before = m.file(step + ".state");
    const Arrays out = m.forward(inputs, options);
    EXPECT_LE(max_difference(out.at("logits"), m[step + "/logits"]), kLogitsTolerance) << step;
    const Array& tokens = inputs.at("tokens");
    const double scored = static_cast<double>(tokens.shape[0] * (tokens.shape[1] - 1));
    const double sum = m[step + "/loss_sum"].numbers().front();
    EXPECT_NEAR(out.at("loss").numbers().front() * scored / sum, 1.0, 1e-6) << step;
    if (step == "step2") m.expect_gradients(out, "g_step2/", scored);

    int64_t compared = 0;
    for (const auto& [name, array] : below(out, "state.")) {
      if (name.rfind("level.", 0) != 0) continue;
      EXPECT_LE(max_difference(array, m[cached_name(step, name)]), kLogitsTolerance) << name;
      ++compared;
    }
    EXPECT_GE(compared, 8);
    // The state file contains what the outputs show.
    const Arrays state = read_arrays(before);
    for (const auto& [name, array] : state) EXPECT_EQ(array.bytes, out.at("state." + name).bytes);
  }
}

// Reading a document in pieces of any length gives the same logits.
TEST_P(LanguageModels, PiecesEqualTheWhole) {
  const Authors m(GetParam(), "meliad");
  const Array& tokens = m["step1/tokens"];
  const Array all = m.forward({{"tokens", tokens}}).at("logits");
  std::string before;
  int64_t first = 0;
  for (const int64_t count : {5, 20, 1, 16, 6}) {
    Arguments options = {"--state-out", m.file("piece.state")};
    if (!before.empty()) options.insert(options.end(), {"--state-in", before});
    before = m.file("piece.state");
    const Array part = m.forward({{"tokens", columns(tokens, first, count)}}, options).at("logits");
    const int64_t vocabulary = all.shape[2];
    Array flat = all;  // [2, 48, V] → [2, 48·V]: columns of tokens are runs of it
    flat.shape = {all.shape[0], all.shape[1] * vocabulary};
    Array want = columns(flat, first * vocabulary, count * vocabulary);
    want.shape = part.shape;
    EXPECT_LE(max_difference(part, want), kLogitsTolerance) << first;
    first += count;
  }
  EXPECT_EQ(first, tokens.shape[1]);
}

INSTANTIATE_TEST_SUITE_P(Authors, LanguageModels,
                         ::testing::Values("brt_slide", "brt_fixed_skip", "brt_lstm_dual"));

TEST(StateFiles, ContinueByteForByte) {
  const Authors m("brt_fixed_skip", "meliad");
  const Arrays first = {{"tokens", m["step1/tokens"]}};
  const Arrays second = {{"tokens", m["step2/tokens"]}};
  m.forward(first, {"--state-out", m.file("a.state")});
  m.forward(first, {"--state-out", m.file("b.state")});
  EXPECT_EQ(slurp(m.file("a.state")), slurp(m.file("b.state")));
  const Arrays one = m.forward(second, {"--state-in", m.file("a.state")});
  const Arrays two = m.forward(second, {"--state-in", m.file("b.state")});
  EXPECT_EQ(one.at("logits").bytes, two.at("logits").bytes);
  EXPECT_NE(one.at("logits").bytes, m.forward(second).at("logits").bytes);
}

TEST(StateFiles, AreRefusedByAnotherModel) {
  const Authors m("brt_fixed_skip", "meliad");
  const Arrays inputs = {{"tokens", m["step1/tokens"]}};
  m.forward(inputs, {"--state-out", m.file("mine.state")});
  const auto with_state = [&](const std::string& model, const Arguments& more) {
    Arguments arguments = {"forward",    model,
                           "--input",    m.file("inputs.safetensors"),
                           "--output",   m.file("refused.safetensors"),
                           "--state-in", m.file("mine.state")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Result result = rondo(arguments);
    EXPECT_FALSE(std::filesystem::exists(m.file("refused.safetensors")));
    return result;
  };
  const char* message = "the state belongs to another model";
  // A different kind of time, the same shapes with different weights, the same weights used
  // differently.
  expect_refusal(with_state(Authors("brt_slide", "meliad").config(), {}), ExitCode::bad_input,
                 message);
  expect_refusal(with_state(m.config(), {"--seed", "3"}), ExitCode::bad_input, message);
  expect_refusal(with_state(m.model(), {"--set", "model.time.attend_self=true"}),
                 ExitCode::bad_input, message);
}

TEST(StateFiles, MustBeStatesOfAsManyRows) {
  const Authors m("brt_fixed_skip", "meliad");
  Arrays inputs = {{"tokens", m["step1/tokens"]}};
  m.forward(inputs, {"--state-out", m.file("two.state")});
  inputs["tokens"] = whole({3, 2}, {1, 2, 3, 4, 5, 6});
  write_arrays(m.file("three.safetensors"), inputs);
  const auto with_state = [&](const std::string& state) {
    return rondo({"forward", m.model(), "--input", m.file("three.safetensors"), "--output",
                  m.file("o.safetensors"), "--state-in", state});
  };
  expect_refusal(with_state(m.file("two.state")), ExitCode::bad_input, "expected 3 rows");
  expect_refusal(with_state(m.model()), ExitCode::bad_input, "not a state file");
  expect_refusal(with_state(m.file("nowhere.state")), ExitCode::io, "nowhere.state: cannot open");
}

}  // namespace
}  // namespace rondo::testing
