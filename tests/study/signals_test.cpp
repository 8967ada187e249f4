// Sizes of signals and similarity of weights, against the formulas on weights and activations.
#include "rondo/study/signal_sizes.h"

#include "tests/study/study_models.h"

namespace rondo::test {
namespace {

using namespace study;

SignalSizes sizes_of(const TinyModel& m, const Batch& batch) {
  GivenBatches data({batch});
  const RingConfig ring =
      std::visit([](const auto& network) { return network.depth.ring; }, m.config.network);
  return signal_sizes(*m.network, data, ring);
}

TEST(Signals, AreMeasuredBesideWhatTheyJoin) {
  const TinyModel m = tiny("ringformer/mt-base");
  const Batch batch = tiny_batch(m.config, 3, 5);
  const SignalSizes found = sizes_of(m, batch);
  const at::NoGradGuard no_grad;
  Everything seen;
  State state;
  m.network->forward(batch.inputs, state, Scope(&seen));
  const auto weights = m.network->named_parameters();
  // The query signal of the second encoder level: its input is the first level's output.
  const Tensor x = seen.one("encoder.level.0.output");
  const Tensor up = weights["encoder.signal.1.query.up"];
  const Tensor down = weights["encoder.signal.1.query.down"];
  const Tensor w = weights["encoder.mixing.0.projections.query.weight"];
  double ratio = 0, direction = 0, tokens = 0;
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t t = 0; t < x.size(1); ++t) {
      if (!batch.real.at("encoder")[b][t].item<bool>()) continue;
      const Tensor g = at::matmul(at::matmul(x[b][t], down.t()), up);
      const Tensor y = at::matmul(w, x[b][t]);
      ratio += (g.norm() / y.norm()).item<double>();
      direction += (at::dot(g, y) / (g.norm() * y.norm())).item<double>();
      ++tokens;
    }
  }
  bool checked = false;
  for (const SignalSize& s : found.sizes) {
    if (s.group != "encoder" || s.level != "2" || s.part != "query") continue;
    EXPECT_NEAR(s.ratio, ratio / tokens, 1e-4);
    EXPECT_NEAR(s.direction, direction / tokens, 1e-4);
    checked = true;
  }
  EXPECT_TRUE(checked);
  EXPECT_EQ(found.sizes.size(),
            2 * 4 * size_t(std::get<EncoderDecoderConfig>(m.config.network).depth.levels));
}

TEST(Signals, WeightsAreComparedAsLevelsApplyThem) {
  for (const char* name :
       {"ringformer/mt-ablation", "ringformer/mt-ablation-before-attention",
        "ringformer/mt-ablation-inter-ffn", "ringformer/mt-ablation-full-rank"}) {
    const TinyModel m = tiny(name);
    const SignalSizes found = sizes_of(m, tiny_batch(m.config, 2, 5));
    const auto weights = m.network->named_parameters();
    const bool before = std::string(name).find("before") != std::string::npos;
    const bool full = std::string(name).find("full") != std::string::npos;
    const auto signal = [&](int64_t level) {
      const std::string path = "encoder.signal." + std::to_string(level) + ".key.";
      return full ? weights[path + "full"].t()
                  : at::matmul(weights[path + "up"].t(), weights[path + "down"]);
    };
    const Tensor w = weights["encoder.mixing.0.projections.key.weight"];
    const auto applied = [&](int64_t level) {
      const Tensor g = signal(level);
      return (before ? w + at::matmul(w, g) : w + g).flatten();
    };
    const Tensor a = applied(0);
    const Tensor b = applied(1);
    const double cosine = (at::dot(a, b) / (a.norm() * b.norm())).item<double>();
    for (const WeightSimilarity& found_weights : found.weights) {
      if (found_weights.group != "encoder" || found_weights.part != "key") continue;
      EXPECT_NEAR(found_weights.effective[0][1].item<double>(), cosine, 1e-5) << name;
      EXPECT_NEAR(found_weights.signals[1][1].item<double>(), 1.0, 1e-9) << name;
    }
  }
}

TEST(Signals, ANetworkWithoutIsRefused) {
  const TinyModel m = tiny("ringformer/mt-base-vanilla");
  expect_error(ExitCode::bad_input, "scheme 'ring'",
               [&] { sizes_of(m, tiny_batch(m.config, 2, 5)); });
}

}  // namespace
}  // namespace rondo::test
