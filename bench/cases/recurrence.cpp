// Recurrence over time: the cost of a recurrent state compared to a sliding window, and how cost
// grows with text length.
#include <fmt/format.h>

#include <cmath>

#include "bench/cases/parts.h"

namespace rondo {
namespace {

OptimizerConfig mini_optimizer() {
  OptimizerConfig o;
  o.kind = "adafactor";
  return o;
}

void add_step(Race& race, const char* name, const LanguageModelConfig& c, int64_t rows, bool bf16) {
  const auto step = language_step(c, rows, bf16, mini_optimizer());
  race.ours(name, static_cast<double>(rows * c.time.segment), "tokens", [step] { (*step)(); });
}

// Steps with equal numbers of tokens. The paper's wide window is 2,048 where the others have 512:
// four times as much.
BenchResult recurrence_costs(const BenchOptions& options) {
  constexpr int64_t kRows = 8;
  Race race("recurrence", options);
  const bool bf16 = false;  // as the recipes train
  add_step(race, "Slide:13L", mini_model("brt/slide-13l", 5), kRows, bf16);
  add_step(race, "Rec:fixed:skip", mini_model("brt/rec-fixed-skip", 4), kRows, bf16);
  add_step(race, "Feedback:fixed:skip", mini_model("brt/feedback-fixed-skip", 4), kRows, bf16);
  LanguageModelConfig wide = mini_model("brt/xl-2048", 4);
  wide.time.window = wide.time.segment = 128;
  add_step(race, "XL:2048", wide, 2 * kRows, bf16);
  race.cost("Rec:fixed:skip", "Slide:13L", 1.00);
  race.cost("Feedback:fixed:skip", "Slide:13L", 1.35);
  race.cost("XL:2048", "Slide:13L", 0);
  return race.run();
}

// The exponent e of seconds = constant · lengthᵉ, by least squares on logarithms.
double fitted_exponent(const std::vector<double>& lengths, const std::vector<double>& seconds) {
  const auto count = static_cast<double>(lengths.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const double a = std::log(lengths[i]);
    const double b = std::log(seconds[i]);
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  return (count * xy - x * y) / (count * xx - x * x);
}

int64_t bytes_of(const State& state) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : state.tensors()) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

// Size of the state after a text of `length` tokens.
int64_t state_bytes(const LanguageModelConfig& c, int64_t length) {
  const at::NoGradGuard no_grad;
  const auto model = std::dynamic_pointer_cast<LanguageModel>(drawn_network(ModelConfig{c}));
  State state;
  model->eval();
  model->forward_tokens(random_tokens(1, length, c.vocabulary), state, Scope());
  return bytes_of(state);
}

BenchResult length_growth(const BenchOptions& options) {
  LanguageModelConfig c = mini_model("brt/rec-fixed-skip", 4);
  c.time.window = 128;
  c.time.states = 128;
  std::vector<double> lengths;
  Race race("growth", options);
  for (int64_t length = 1024; length <= 16384; length *= 2) {
    lengths.push_back(static_cast<double>(length));
    c.time.segment = length;
    add_step(race, fmt::format("N {}", length).c_str(), c, 1, false);
  }
  BenchResult result = race.run();
  const auto exponent = [&](double Spread::*which) {
    std::vector<double> seconds;
    for (const BenchLine& line : result.lines) seconds.push_back(line.seconds.*which);
    return fitted_exponent(lengths, seconds);
  };
  const Spread fitted = {exponent(&Spread::median), exponent(&Spread::low),
                         exponent(&Spread::high)};
  result.claims.push_back({"step time ~ N to the power", fitted, 1.05, false, result.conclusive});
  const double grown =
      static_cast<double>(state_bytes(c, 16384)) / static_cast<double>(state_bytes(c, 1024));
  result.claims.push_back(
      {"state size at 16,384 tokens over 1,024", {grown, grown, grown}, 1.0, false, true});
  return result;
}

}  // namespace

void add_recurrence_cases(std::vector<BenchCase>& cases) {
  cases.push_back({"recurrence", "training steps with a recurrent state vs. a sliding window",
                   false, recurrence_costs});
  cases.push_back({"growth", "training steps on increasingly long texts with a fixed window", false,
                   length_growth});
}

}  // namespace rondo
