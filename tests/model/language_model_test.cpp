// Language models of the zoo, and every depth scheme with every kind of time: no token sees later
// ones, results do not depend on how a document is split, states can be stored in files, resets.
#include "rondo/model/language_model.h"

#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/reference.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr double kSameAnswer = 1e-5;

// A tiny language model that can be run in pieces.
struct TinyReader {
  explicit TinyReader(const ModelConfig& config, uint64_t seed = 1) : model(config, seed) {}
  explicit TinyReader(const LanguageModelConfig& config) : model(ModelConfig{config}) {}

  const LanguageModelConfig& config() const {
    return std::get<LanguageModelConfig>(model.config.network);
  }
  int64_t window() const { return config().time.window; }
  Tensor tokens(int64_t rows, int64_t length, uint64_t seed) const {
    return tiny_inputs(model.config, rows, seed, length).at("tokens");
  }
  Tensor read(const Tensor& tokens, State& state) const {
    return model.network->forward({{"tokens", tokens}}, state, Scope()).at("logits");
  }
  Tensor read(const Tensor& tokens) const {
    State state;
    return read(tokens, state);
  }
  Tensor read_in_pieces(const Tensor& tokens, int64_t piece, State& state) const {
    std::vector<Tensor> parts;
    for (int64_t done = 0; done < tokens.size(1); done += piece) {
      const int64_t count = std::min(piece, tokens.size(1) - done);
      parts.push_back(read(tokens.narrow(1, done, count), state));
    }
    return at::cat(parts, 1);
  }

  TinyModel model;
};

void expect_same_states(const State& a, const State& b, double tolerance) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const auto& [name, tensor] : a.tensors()) expect_near(tensor, b.get(name), tolerance, name);
}

void check_chunking(const TinyReader& m) {
  const at::NoGradGuard no_grad;
  const int64_t w = m.window();
  const Tensor tokens = m.tokens(2, 3 * w + 2, 3);
  State whole_state;
  const Tensor whole = m.read(tokens, whole_state);
  for (const int64_t piece : {int64_t{1}, int64_t{3}, w, 2 * w + 1}) {
    State state;
    expect_near(m.read_in_pieces(tokens, piece, state), whole, kSameAnswer,
                "pieces of " + std::to_string(piece));
    expect_same_states(state, whole_state, kSameAnswer);
  }
}

void check_no_peeking(const TinyReader& m) {
  const at::NoGradGuard no_grad;
  const int64_t length = 2 * m.window() + 3;
  for (const int64_t at : {int64_t{1}, m.window() - 1, m.window(), length - 1}) {
    const Tensor tokens = m.tokens(2, length, 4);
    const Tensor before = m.read(tokens);
    tokens[0][at] = (tokens[0][at] + 1).remainder(m.config().vocabulary);
    const Tensor after = m.read(tokens);
    expect_identical(after[0].narrow(0, 0, at), before[0].narrow(0, 0, at),
                     "token " + std::to_string(at));
    EXPECT_GT((after - before)[0].narrow(0, at, length - at).abs().max().item<double>(), 0.0);
    expect_identical(after[1], before[1], "the other row");
  }
}

class ReaderConformance : public ::testing::TestWithParam<std::string> {
 protected:
  TinyReader m_ = TinyReader(shrink(find_model(GetParam()).config()));
};

TEST_P(ReaderConformance, NoTokenSeesTheFuture) { check_no_peeking(m_); }

TEST_P(ReaderConformance, WholeEqualsPiecesEqualsTokenByToken) { check_chunking(m_); }

TEST_P(ReaderConformance, AStateKeptInAFileMidBlockGoesOnExactly) {
  const at::NoGradGuard no_grad;
  const Tensor tokens = m_.tokens(2, 3 * m_.window(), 5);
  const int64_t first = m_.window() + 1;
  const Tensor rest = tokens.narrow(1, first, tokens.size(1) - first);
  State state;
  m_.read(tokens.narrow(1, 0, first), state);
  const TemporaryFile file(".state");
  const std::string mark = fingerprint(m_.model.config, *m_.model.network);
  state.save(file.path(), mark);
  const Tensor uninterrupted = m_.read(rest, state);
  const auto& reader = dynamic_cast<const LanguageModel&>(*m_.model.network);
  State loaded = reader.load_state(file.path(), mark, 2);
  expect_identical(m_.read(rest, loaded), uninterrupted);
  expect_same_states(loaded, state, 0.0);
  const TinyReader other(m_.model.config, 77);
  expect_error(ExitCode::bad_input, "belongs to another model", [&] {
    State::load(file.path(), fingerprint(other.model.config, *other.model.network));
  });
}

TEST_P(ReaderConformance, AResetRowBeginsANewDocument) {
  const at::NoGradGuard no_grad;
  const int64_t w = m_.window();
  const Tensor tokens = m_.tokens(2, 5 * w + 1, 6);
  State state;
  m_.read(tokens.narrow(1, 0, 2 * w), state);
  const Tensor rest = tokens.narrow(1, 2 * w, 3 * w + 1);
  const NamedTensors in = {{"tokens", rest}, {"reset", at::tensor({0, 1}, at::kInt).to(at::kBool)}};
  const Tensor got = m_.model.network->forward(in, state, Scope()).at("logits");
  expect_near(got[0], m_.read(tokens)[0].narrow(0, 2 * w, 3 * w + 1), kSameAnswer, "goes on");
  expect_near(got[1], m_.read(rest)[1], kSameAnswer, "begins");
  expect_identical(state.get("position"), at::tensor({5 * w + 1, 3 * w + 1}, at::kLong));
}

TEST_P(ReaderConformance, AllRowsMayBeginAnewMidBlock) {
  const at::NoGradGuard no_grad;
  const int64_t w = m_.window();
  const Tensor past = m_.tokens(2, w + 3, 7);
  const Tensor tokens = m_.tokens(2, 3 * w, 8);
  State state;
  m_.read(past, state);
  state = state.reset(at::ones({2}, at::kBool));
  State fresh;
  expect_near(m_.read_in_pieces(tokens, w + 1, state), m_.read_in_pieces(tokens, w + 1, fresh),
              kSameAnswer);
}

TEST_P(ReaderConformance, RowsOfAStateMayBeReordered) {
  const at::NoGradGuard no_grad;
  const int64_t w = m_.window();
  const Tensor tokens = m_.tokens(3, 2 * w + 1, 9);
  const Tensor order = at::tensor({2, 2, 0}, at::kLong);
  State state;
  m_.read(tokens.narrow(1, 0, w + 1), state);
  const Tensor rest = tokens.narrow(1, w + 1, w);
  State chosen = state.select(order);
  const Tensor got = m_.read(rest.index_select(0, order), chosen);
  expect_near(got, m_.read(rest, state).index_select(0, order), kSameAnswer);
}

INSTANTIATE_TEST_SUITE_P(Zoo, ReaderConformance, ::testing::ValuesIn(zoo_names("lm")),
                         NameOfModel());

// ---- every depth scheme with every kind of time ------------------------------------------------

using DepthAndTime = std::tuple<const char*, const char*>;

LanguageModelConfig combined(const std::string& scheme, const std::string& kind) {
  LanguageModelConfig c;
  c.depth.scheme = scheme;
  c.depth.levels = 4;
  c.depth.recursive.blocks = {2};
  c.depth.recursive.loops = {2};
  c.depth.recursive.residual = "both";
  c.depth.recursive.projection = 1.0;
  c.depth.ring.rank = 2;
  c.time.kind = kind;
  c.time.recurrent_layers = {2};
  c.time.memory_layer = 3;
  return std::get<LanguageModelConfig>(shrink(ModelConfig{c}).network);
}

class Switchboard : public ::testing::TestWithParam<DepthAndTime> {
 protected:
  TinyReader m_ = TinyReader(combined(std::get<0>(GetParam()), std::get<1>(GetParam())));
};

TEST_P(Switchboard, NoTokenSeesTheFuture) { check_no_peeking(m_); }

TEST_P(Switchboard, WholeEqualsPiecesEqualsTokenByToken) { check_chunking(m_); }

TEST_P(Switchboard, AGradientReachesEveryParameter) {
  const Tensor logits = m_.read(m_.tokens(2, 3 * m_.window() + 1, 10));
  (logits * noise(logits.sizes().vec(), 11, at::kFloat)).sum().backward();
  for (const auto& item : m_.model.network->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0.0) << item.key();
  }
}

INSTANTIATE_TEST_SUITE_P(
    DepthTime, Switchboard,
    ::testing::Combine(::testing::Values("vanilla", "universal", "one-wide", "ring", "recursive"),
                       ::testing::Values("none", "window", "block-recurrent", "feedback",
                                         "memorizing")),
    [](const auto& given) {
      return test_name(std::string(std::get<0>(given.param)) + "_with_" + std::get<1>(given.param));
    });

TEST(SwitchboardOptions, KeepTheSameAnswerHoweverADocumentIsCut) {
  for (const char* kind : {"window", "block-recurrent", "feedback", "memorizing"}) {
    for (const bool attend_self : {false, true}) {
      LanguageModelConfig c = combined("vanilla", kind);
      c.time.attend_self = attend_self;
      c.time.mask_empty_cache = !attend_self;
      SCOPED_TRACE(kind);
      check_chunking(TinyReader(c));
      check_no_peeking(TinyReader(c));
    }
  }
}

TEST(SwitchboardOptions, SeveralRecurrentLayersShareNothing) {
  for (const char* scheme : {"vanilla", "ring", "recursive"}) {
    LanguageModelConfig c = combined(scheme, "block-recurrent");
    c.time.recurrent_layers = {1, 2, 4};
    const TinyReader m(c);
    check_chunking(m);
    int64_t initials = 0;
    for (const auto& item : m.model.network->named_parameters()) {
      initials += item.key().find(".initial") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(initials, 3) << scheme;
  }
}

// ---- inputs and states that do not fit ---------------------------------------------------------

TEST(LanguageModelInputs, ARowMayNotBeginAnewInsideABlock) {
  const TinyReader m(combined("vanilla", "block-recurrent"));
  const at::NoGradGuard no_grad;
  State state;
  m.read(m.tokens(2, m.window() + 1, 1), state);
  state = state.reset(at::tensor({1, 0}, at::kInt).to(at::kBool));
  expect_error(ExitCode::bad_input, "only between blocks of 4 tokens",
               [&] { m.read(m.tokens(2, 1, 2), state); });
}

TEST(LanguageModelInputs, StatesOfAnotherBatchOrModelAreRefused) {
  const TinyReader m(combined("vanilla", "block-recurrent"));
  const at::NoGradGuard no_grad;
  State state;
  m.read(m.tokens(2, 5, 1), state);
  State copy = state;
  expect_error(ExitCode::bad_input, "expected 3 rows", [&] { m.read(m.tokens(3, 1, 2), copy); });
  copy = state;
  copy.set("level.1.state", at::zeros({2, 9, 16}));
  expect_error(ExitCode::bad_input, "level.1.state: expected F32 [2, 3, 16], got F32 [2, 9, 16]",
               [&] { m.read(m.tokens(2, 1, 2), copy); });
  State foreign;
  foreign.set("memory", at::zeros({2, 3, 16}));
  expect_error(ExitCode::bad_input, "'position' is missing",
               [&] { m.read(m.tokens(2, 1, 2), foreign); });
}

TEST(LanguageModelInputs, WrongTensorsAreNamed) {
  const TinyReader m(combined("vanilla", "window"));
  const auto run = [&](const NamedTensors& in) {
    State state;
    m.model.network->forward(in, state, Scope());
  };
  expect_error(ExitCode::bad_input, "'tokens' is missing", [&] { run({}); });
  expect_error(ExitCode::bad_input, "expected Long with 2 dimensions", [&] {
    run({{"tokens", at::zeros({2, 3})}});
  });
  expect_error(ExitCode::bad_input, "expected tokens from 0 to 39, got 40", [&] {
    run({{"tokens", at::full({1, 2}, 40, at::kLong)}});
  });
  expect_error(ExitCode::bad_input, "expected tokens from 0 to 39, got -1", [&] {
    run({{"tokens", at::full({1, 2}, -1, at::kLong)}});
  });
  expect_error(ExitCode::bad_input, "tokens: expected 1 or more tokens", [&] {
    run({{"tokens", at::zeros({1, 0}, at::kLong)}});
  });
  expect_error(ExitCode::bad_input, "reset: expected 2 rows, got 3", [&] {
    run({{"tokens", at::zeros({2, 3}, at::kLong)}, {"reset", at::ones({3}, at::kBool)}});
  });
}

TEST(LanguageModelState, IsCutOffFromTheGradient) {
  const TinyReader m(combined("ring", "feedback"));
  State state;
  EXPECT_TRUE(m.read(m.tokens(1, 6, 1), state).requires_grad());
  for (const auto& [name, tensor] : state.tensors()) EXPECT_FALSE(tensor.requires_grad()) << name;
}

}  // namespace
}  // namespace rondo::test
