// Reading one token at a time through step buffers: the same answers and the same state as reading
// whole, from any state, for every language model that can.
#include <set>

#include "rondo/model/language_model.h"
#include "rondo/recurrence/step_cache.h"
#include "tests/support/expect.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr double kSameStep = 1e-5;

struct Stepper {
  explicit Stepper(const ModelConfig& config) : model(config) {}
  LanguageModel& network() const { return dynamic_cast<LanguageModel&>(*model.network); }
  int64_t window() const { return network().config().time.window; }
  Tensor tokens(int64_t length, uint64_t seed) const {
    return tiny_inputs(model.config, 2, seed, length).at("tokens");
  }
  // Logits of all `tokens`, one step each; `state` moves on.
  Tensor step_all(const Tensor& tokens, State& state) const {
    StepCaches caches = network().open_steps(state, tokens.size(0));
    std::vector<Tensor> logits;
    for (int64_t i = 0; i < tokens.size(1); ++i) {
      logits.push_back(network().step(tokens.select(1, i), caches));
    }
    state = network().close_steps(caches);
    return at::stack(logits, 1);
  }
  Tensor read(const Tensor& tokens, State& state) const {
    return network().forward_tokens(tokens, state, Scope());
  }

  TinyModel model;
};

void expect_states_agree(const State& a, const State& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const auto& [name, tensor] : a.tensors()) expect_near(tensor, b.get(name), kSameStep, name);
}

void check_steps(const Stepper& m) {
  const at::NoGradGuard no_grad;
  const int64_t w = m.window();
  for (const int64_t behind : {int64_t{0}, int64_t{1}, w, 2 * w + 1}) {
    State read_state;
    if (behind > 0) m.read(m.tokens(behind, 1), read_state);
    State stepped_state = read_state;
    const Tensor tokens = m.tokens(2 * w + 3, 2);
    const Tensor want = m.read(tokens, read_state);
    expect_near(m.step_all(tokens, stepped_state), want, kSameStep, std::to_string(behind));
    expect_states_agree(stepped_state, read_state);
  }
}

void check_resets(const Stepper& m) {
  const at::NoGradGuard no_grad;
  const Tensor all = at::ones({2}, at::kBool);
  const Tensor one = at::tensor({0, 1}, at::kInt).to(at::kBool);
  const int64_t w = m.window();
  for (const auto& [behind, rows] : {std::make_pair(w + 1, all), std::make_pair(2 * w, one)}) {
    State state;
    m.read(m.tokens(behind, 3), state);
    State read_state = state.reset(rows);
    State stepped_state = read_state;
    const Tensor tokens = m.tokens(w + 2, 4);
    expect_near(m.step_all(tokens, stepped_state), m.read(tokens, read_state), kSameStep);
  }
}

std::vector<std::string> stepping_names() {
  std::vector<std::string> names;
  for (const std::string& name : zoo_names("lm")) {
    if (Stepper(shrink(find_model(name).config())).network().can_step()) names.push_back(name);
  }
  return names;
}

class StepConformance : public ::testing::TestWithParam<std::string> {
 protected:
  Stepper m_ = Stepper(shrink(find_model(GetParam()).config()));
};

TEST_P(StepConformance, StepsEqualReadingWhole) { check_steps(m_); }
TEST_P(StepConformance, RowsMayBeginAnew) { check_resets(m_); }

INSTANTIATE_TEST_SUITE_P(Zoo, StepConformance, ::testing::ValuesIn(stepping_names()),
                         NameOfModel());

TEST(Steps, OfEverySchemeKindAndOption) {
  for (const char* scheme : {"vanilla", "universal", "one-wide", "ring", "recursive"}) {
    for (const char* kind : {"window", "block-recurrent", "feedback"}) {
      for (const bool attend_self : {false, true}) {
        LanguageModelConfig c;
        c.depth.scheme = scheme;
        c.depth.levels = 4;
        c.depth.recursive.blocks = {2};
        c.depth.recursive.loops = {2};
        c.time.kind = kind;
        c.time.recurrent_layers = {1, 3};
        c.time.attend_self = attend_self;
        c.time.mask_empty_cache = !attend_self;
        SCOPED_TRACE(std::string(scheme) + " " + kind);
        check_steps(Stepper(shrink(ModelConfig{c})));
      }
    }
  }
}

TEST(Steps, AreRefusedWhereThePastIsUnbounded) {
  std::set<std::string> kinds;
  for (const char* kind : {"none", "window", "block-recurrent", "feedback", "memorizing"}) {
    LanguageModelConfig c;
    c.depth.levels = 12;
    c.time.kind = kind;
    if (Stepper(shrink(ModelConfig{c})).network().can_step()) kinds.insert(kind);
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"window", "block-recurrent", "feedback"}));
}

}  // namespace
}  // namespace rondo::test
