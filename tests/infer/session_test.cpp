// Sessions: documents that share a step give the same bits as alone; they join, leave, are forked
// and restored; one model serves many threads.
#include "rondo/infer/session.h"

#include <thread>

#include "tests/support/expect.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr double kSameStep = 1e-5;

struct Compiled {
  explicit Compiled(const ModelConfig& config,
                    kernels::PackedFormat format = kernels::PackedFormat::fp32)
      : tiny(config), model(std::dynamic_pointer_cast<LanguageModel>(tiny.network)) {
    compiled = std::make_shared<CompiledLanguageModel>(model, format);
  }
  int64_t window() const { return model->config().time.window; }
  Tensor tokens(int64_t rows, int64_t length, uint64_t seed) const {  // [rows, length]
    return tiny_inputs(tiny.config, rows, seed, length).at("tokens");
  }
  // The forward pass of training.
  Tensor read(const Tensor& tokens, State& state) const {
    const at::NoGradGuard no_grad;
    return model->forward_tokens(tokens, state, Scope());
  }

  TinyModel tiny;
  std::shared_ptr<LanguageModel> model;
  std::shared_ptr<const CompiledLanguageModel> compiled;
};

Tensor row_index(int64_t row) { return at::full({1}, row, at::kLong); }

// Logits [B, T, V] of `tokens`, one step at a time for all rows; rows continue from `state`, which
// is updated row by row.
Tensor step_all(const Compiled& m, const Tensor& tokens, std::vector<State>& states) {
  Session session(m.compiled);
  std::vector<Session::RowId> rows;
  for (const State& state : states) rows.push_back(session.add(state));
  std::vector<Tensor> logits;
  for (int64_t t = 0; t < tokens.size(1); ++t) {
    std::vector<Session::Token> step;
    for (size_t r = 0; r < rows.size(); ++r) {
      step.push_back({rows[r], tokens[static_cast<int64_t>(r)][t].item<int64_t>()});
    }
    session.step(step);
    std::vector<Tensor> after;
    for (const Session::RowId row : rows) after.push_back(at::tensor(session.logits(row)));
    logits.push_back(at::stack(after));
  }
  for (size_t r = 0; r < rows.size(); ++r) states[r] = session.state(rows[r]).without("logits");
  return at::stack(logits, 1);
}

void expect_states_agree(const std::vector<State>& rows, const State& whole) {
  for (size_t r = 0; r < rows.size(); ++r) {
    const State want = whole.select(row_index(static_cast<int64_t>(r)));
    ASSERT_EQ(rows[r].tensors().size(), want.tensors().size());
    for (const auto& [name, tensor] : rows[r].tensors()) {
      if (tensor.numel() > 0) expect_near(tensor, want.get(name), kSameStep, name);
    }
  }
}

std::vector<State> rows_of(const State& state) {
  std::vector<State> rows(2);
  for (int64_t r = 0; r < 2 && !state.empty(); ++r) {
    rows[static_cast<size_t>(r)] = state.select(row_index(r));
  }
  return rows;
}

class SessionOf : public ::testing::TestWithParam<std::string> {
 protected:
  Compiled m_ = Compiled(shrink(find_model(GetParam()).config()));
};

TEST_P(SessionOf, StepsEqualReadingWhole) {
  const int64_t w = m_.window();
  for (const int64_t before : {int64_t{0}, int64_t{1}, w, 2 * w + 1}) {
    State read_state;
    if (before > 0) m_.read(m_.tokens(2, before, 1), read_state);
    std::vector<State> stepped = rows_of(read_state);
    const Tensor tokens = m_.tokens(2, 2 * w + 3, 2);
    const Tensor want = m_.read(tokens, read_state);
    expect_near(step_all(m_, tokens, stepped), want, kSameStep, std::to_string(before));
    expect_states_agree(stepped, read_state);
  }
}

TEST_P(SessionOf, DocumentsMayBeginAnew) {
  const int64_t w = m_.window();
  for (const int64_t before : {w + 1, 2 * w}) {
    State state;
    m_.read(m_.tokens(2, before, 3), state);
    State read_state = state.reset(at::ones({2}, at::kBool));
    std::vector<State> stepped = rows_of(read_state);
    const Tensor tokens = m_.tokens(2, w + 2, 4);
    expect_near(step_all(m_, tokens, stepped), m_.read(tokens, read_state), kSameStep);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, SessionOf, ::testing::ValuesIn(zoo_names("lm")), NameOfModel());

// ---- rows ----

Compiled recurrent_model(kernels::PackedFormat format = kernels::PackedFormat::fp32) {
  LanguageModelConfig c;
  c.depth.levels = 3;
  c.time.kind = "block-recurrent";
  c.time.recurrent_layers = {2};
  return Compiled(shrink(ModelConfig{c}), format);
}

std::vector<int32_t> text_of(const Compiled& m, int64_t length, uint64_t seed) {
  const Tensor t = m.tokens(1, length, seed)[0].to(at::kInt).contiguous();
  return {t.data_ptr<int32_t>(), t.data_ptr<int32_t>() + length};
}

// Repeatedly the likeliest token, by a separate session.
std::vector<int64_t> write_alone(const Compiled& m, const std::vector<int32_t>& prompt,
                                 int64_t count) {
  Session session(m.compiled);
  const Session::RowId row = session.add();
  session.read(row, prompt);
  std::vector<int64_t> text;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<float>& logits = session.logits(row);
    text.push_back(std::max_element(logits.begin(), logits.end()) - logits.begin());
    session.step({{row, text.back()}});
  }
  return text;
}

// Every format: rows that join and leave at any time do not affect the others.
TEST(Sessions, ARowDoesNotDependOnTheOthers) {
  for (const auto format :
       {kernels::PackedFormat::fp32, kernels::PackedFormat::bf16, kernels::PackedFormat::int8}) {
    SCOPED_TRACE("format " + std::to_string(static_cast<int>(format)));
    const Compiled m = recurrent_model(format);
    constexpr int64_t kRows = 11;
    constexpr int64_t kSteps = 20;
    std::vector<std::vector<std::vector<float>>> alone(kRows);
    for (int64_t r = 0; r < kRows; ++r) {
      Session session(m.compiled);
      const Session::RowId row = session.add();
      for (const int32_t token : text_of(m, kSteps, static_cast<uint64_t>(r))) {
        session.step({{row, token}});
        alone[static_cast<size_t>(r)].push_back(session.logits(row));
      }
    }
    Session session(m.compiled);
    std::map<int64_t, Session::RowId> rows;
    for (int64_t t = 0; t < kSteps + kRows; ++t) {  // row r from step r on
      if (t < kRows) rows[t] = session.add();
      std::vector<Session::Token> step;
      for (const auto& [r, id] : rows) {
        const std::vector<int32_t> text = text_of(m, kSteps, static_cast<uint64_t>(r));
        step.push_back({id, text[static_cast<size_t>(t - r)]});
      }
      session.step(step);
      for (auto it = rows.begin(); it != rows.end();) {
        const auto [r, id] = *it;
        ASSERT_EQ(session.logits(id), alone[static_cast<size_t>(r)][static_cast<size_t>(t - r)])
            << "row " << r << ", step " << t;
        ++it;
        if (t - r + 1 == kSteps) {
          session.remove(id);
          rows.erase(r);
        }
      }
    }
    EXPECT_EQ(session.rows(), 0);
  }
}

// So many rows that each thread processes its own.
TEST(Sessions, ManyRowsAreSharedOutByRows) {
  const Compiled m = recurrent_model();
  constexpr int64_t kTexts = 7;
  constexpr int64_t kRows = 40 * 3;
  constexpr int64_t kSteps = 40;  // more than the trials with one thread and with all
  std::vector<std::vector<int32_t>> texts;
  std::vector<Tensor> alone;
  for (int64_t i = 0; i < kTexts; ++i) {
    texts.push_back(text_of(m, kSteps, static_cast<uint64_t>(i)));
    std::vector<State> fresh(1);
    alone.push_back(step_all(m, m.tokens(1, kSteps, static_cast<uint64_t>(i)), fresh)[0]);
  }
  Session session(m.compiled);
  std::vector<Session::RowId> rows;
  for (int64_t r = 0; r < kRows; ++r) rows.push_back(session.add());
  for (int64_t t = 0; t < kSteps; ++t) {
    std::vector<Session::Token> step;
    for (size_t r = 0; r < rows.size(); ++r) {
      step.push_back({rows[r], texts[r % kTexts][static_cast<size_t>(t)]});
    }
    session.step(step);
    for (size_t r = 0; r < rows.size(); ++r) {
      ASSERT_TRUE(at::equal(at::tensor(session.logits(rows[r])), alone[r % kTexts][t]))
          << "row " << r << ", step " << t;
    }
  }
}

// So many states that the cell processes them in pieces that end in the middle of rows; all blocks
// end together, and alone.
TEST(Sessions, TheEndOfABlockDoesNotDependOnRowsOrThreads) {
  LanguageModelConfig c = std::get<LanguageModelConfig>(recurrent_model().tiny.config.network);
  c.time.states = 70;
  c.time.gate = "lstm";
  c.time.configuration = "dual";
  const Compiled m{ModelConfig{c}};
  constexpr int64_t kSteps = 40;  // more than the trials with one thread and with all
  const Tensor tokens = m.tokens(4, kSteps, 5);
  const int before = Runtime::get().threads();
  std::vector<Tensor> alone;
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE("threads " + std::to_string(threads));
    Runtime::get().use_threads(threads);
    std::vector<State> states(4);
    const Tensor logits = step_all(m, tokens, states);
    for (int64_t r = 0; r < 4; ++r) {
      std::vector<State> one(1);
      if (threads == 1) alone.push_back(step_all(m, tokens.narrow(0, r, 1), one)[0]);
      expect_identical(logits[r], alone[static_cast<size_t>(r)], "row " + std::to_string(r));
    }
  }
  Runtime::get().use_threads(before);
}

TEST(Sessions, AForkGoesItsOwnWay) {
  const Compiled m = recurrent_model();
  Session session(m.compiled);
  const Session::RowId first = session.add();
  session.read(first, text_of(m, 7, 1));
  session.step({{first, 3}});
  const Session::RowId second = session.fork(first);
  EXPECT_EQ(session.logits(second), session.logits(first));
  const State before = session.state(second);
  for (int64_t i = 0; i < 3 * m.window(); ++i) session.step({{first, i % 40}});
  const State after = session.state(second);
  for (const auto& [name, tensor] : before.tensors()) {
    expect_identical(after.get(name), tensor, name);
  }
  for (int64_t i = 0; i < 3 * m.window(); ++i) session.step({{second, i % 40}});
  EXPECT_EQ(session.logits(second), session.logits(first));
}

TEST(Sessions, ASecondOneCostsItsStateAlone) {
  const Compiled m = recurrent_model();
  Session session(m.compiled);
  EXPECT_EQ(session.bytes(), 0);
  const Session::RowId first = session.add();
  session.step({{first, 1}});
  const int64_t one = session.bytes();
  session.step({{session.add(), 1}});
  EXPECT_EQ(session.bytes(), 2 * one);
}

TEST(Sessions, RefuseWhatTheyDoNotKnow) {
  const Compiled m = recurrent_model();
  Session session(m.compiled);
  const Session::RowId row = session.add();
  expect_error(ExitCode::failure, "row 7 does not exist", [&] { session.step({{7, 1}}); });
  expect_error(ExitCode::failure, "row 7 does not exist", [&] { session.remove(7); });
  expect_error(ExitCode::failure, "occurs twice", [&] { session.step({{row, 1}, {row, 2}}); });
  const int64_t size = m.model->config().vocabulary;
  for (const int64_t token : {int64_t{-1}, size}) {
    expect_error(ExitCode::bad_input, "is not in a vocabulary of", [&] {
      session.step({{row, token}});
    });
  }
  expect_error(ExitCode::bad_input, "is not in a vocabulary of",
               [&] { session.read(row, {static_cast<int32_t>(size)}); });
  State state;
  state.set("logits", at::zeros({1, 3}));
  expect_error(ExitCode::bad_input, "expected " + std::to_string(size),
               [&] { session.add(state); });
  session.step({{row, 1}});  // the session still works
  EXPECT_EQ(session.tokens_seen(row), 1);
}

// One model, many threads with a session each; all take turns.
TEST(Sessions, OfOneModelInManyThreads) {
  const Compiled m = recurrent_model();
  constexpr int64_t kDocuments = 8;
  constexpr int64_t kWritten = 30;
  std::vector<std::vector<int64_t>> want(kDocuments);
  for (size_t i = 0; i < kDocuments; ++i) {
    want[i] = write_alone(m, text_of(m, 5 + static_cast<int64_t>(i), i), kWritten);
  }
  std::vector<std::vector<int64_t>> got(kDocuments);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < kDocuments; i += 4) {
        got[i] = write_alone(m, text_of(m, 5 + static_cast<int64_t>(i), i), kWritten);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, want);
}

TEST(Runtimes, RethrowWhatWorkThrows) {
  EXPECT_THROW(Runtime::get().compute([] { throw std::runtime_error("no"); }), std::runtime_error);
  int64_t done = 0;
  Runtime::get().compute([&] { done = 1; });
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace rondo::test
