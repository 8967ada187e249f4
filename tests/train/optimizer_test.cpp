// Adafactor against the authors' five steps, Adam and AdamW against textbook loops, schedules
// against the authors' table, weight-decay groups.
#include "rondo/train/optimizer.h"

#include "tests/support/reference.h"

namespace rondo::test {
namespace {

TEST(AdafactorReference, FiveStepsOfEveryTensor) {
  const Reference r("adafactor");
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const auto& [name, tensor] : r.below("param0/")) {
    parameters.emplace_back(name, tensor.clone().requires_grad_(true));
  }
  ASSERT_EQ(parameters.size(), 6U);
  OptimizerConfig config;
  config.kind = "adafactor";
  const auto optimizer = make_optimizer(config, parameters);
  for (int64_t n = 0; n < 5; ++n) {
    for (auto& [name, value] : parameters) {
      value.mutable_grad() = r["grad" + std::to_string(n) + "/" + name];
    }
    optimizer->step(n + 1, r["lr/" + std::to_string(n)].item<double>());
    for (const auto& [name, value] : parameters) {
      const Tensor want = r["param" + std::to_string(n + 1) + "/" + name];
      EXPECT_LE(relative_difference(value.detach(), want), 2e-6) << name << " step " << n;
    }
  }
}

TEST(Schedules, RsqrtEqualsTheAuthors) {
  const Reference r("adafactor");
  const Tensor steps = r["lr_schedule/steps"];
  const Tensor want = r["lr_schedule/rsqrt_std_warm1000"];
  ScheduleConfig s;
  s.kind = "rsqrt";
  s.rate = 1.0;
  s.warmup = 1000;
  for (int64_t i = 0; i < steps.size(0); ++i) {
    EXPECT_NEAR(learning_rate(s, steps[i].item<int64_t>(), 1 << 20), want[i].item<double>(),
                1e-7 * want[i].item<double>() + 1e-12)
        << "step " << steps[i].item<int64_t>();
  }
}

TEST(Schedules, EndsAndWarmUp) {
  ScheduleConfig s;
  s.rate = 2.0;
  s.final_rate = 0.5;
  s.warmup = 10;
  for (const char* kind : {"constant", "linear", "cosine", "inverse-sqrt"}) {
    s.kind = kind;
    EXPECT_DOUBLE_EQ(learning_rate(s, 5, 110), 1.0) << kind;
    EXPECT_DOUBLE_EQ(learning_rate(s, 10, 110), 2.0) << kind;
  }
  s.kind = "linear";
  EXPECT_DOUBLE_EQ(learning_rate(s, 60, 110), 1.25);
  EXPECT_DOUBLE_EQ(learning_rate(s, 110, 110), 0.5);
  s.kind = "cosine";
  EXPECT_DOUBLE_EQ(learning_rate(s, 60, 110), 1.25);
  EXPECT_DOUBLE_EQ(learning_rate(s, 110, 110), 0.5);
  s.kind = "inverse-sqrt";
  EXPECT_DOUBLE_EQ(learning_rate(s, 40, 110), 1.0);
}

// Adam, element by element.
void textbook_adam(std::vector<double>& w, const std::vector<double>& g, std::vector<double>& m,
                   std::vector<double>& v, int64_t t, const OptimizerConfig& c, double rate) {
  for (size_t i = 0; i < w.size(); ++i) {
    const double decayed = c.kind == "adam" ? g[i] + c.weight_decay * w[i] : g[i];
    if (c.kind == "adamw") w[i] -= rate * c.weight_decay * w[i];
    m[i] = c.beta1 * m[i] + (1 - c.beta1) * decayed;
    v[i] = c.beta2 * v[i] + (1 - c.beta2) * decayed * decayed;
    const double mean = m[i] / (1 - std::pow(c.beta1, t));
    const double square = v[i] / (1 - std::pow(c.beta2, t));
    w[i] -= rate * mean / (std::sqrt(square) + c.epsilon);
  }
}

TEST(AdamTextbook, BothKindsWithWeightDecay) {
  for (const char* kind : {"adam", "adamw"}) {
    OptimizerConfig c;
    c.kind = kind;
    c.weight_decay = 0.1;
    at::manual_seed(3);
    Tensor w = at::randn({3, 4}, at::kDouble).requires_grad_(true);
    std::vector<double> want(w.data_ptr<double>(), w.data_ptr<double>() + 12);
    std::vector<double> m(12), v(12);
    const auto optimizer =
        make_optimizer(c, std::vector<std::pair<std::string, Tensor>>{{"map.weight", w}});
    for (int64_t t = 1; t <= 6; ++t) {
      const Tensor g = at::randn({3, 4}, at::kDouble);
      w.mutable_grad() = g;
      optimizer->step(t, 0.01);
      textbook_adam(want, std::vector<double>(g.data_ptr<double>(), g.data_ptr<double>() + 12), m,
                    v, t, c, 0.01);
    }
    for (int64_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(w.data_ptr<double>()[i], want[static_cast<size_t>(i)], 1e-12) << kind;
    }
  }
}

TEST(WeightDecayGroups, OnlyMatrices) {
  EXPECT_TRUE(decays_weight("stack.mixing.0.projections.query.weight", at::zeros({4, 4})));
  EXPECT_FALSE(decays_weight("stack.norm.0.weight", at::zeros({4})));
  EXPECT_FALSE(decays_weight("head.bias", at::zeros({4})));
  EXPECT_FALSE(decays_weight("stack.residual.0.identity", at::zeros({2})));
  EXPECT_FALSE(decays_weight("positions", at::zeros({1, 4, 4})));
}

}  // namespace
}  // namespace rondo::test
