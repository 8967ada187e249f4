// Metrics logged about a network's own parameters.
#include "rondo/train/weight_metrics.h"

#include "tests/support/expect.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

TEST(WeightMetrics, HoldEveryCoefficient) {
  const TinyModel m(shrink(find_model("sret/t").config()));
  const Metrics metrics = weight_metrics(*m.network);
  size_t coefficients = 0;
  for (const auto& item : m.network->named_parameters()) {
    const std::string& name = item.key();
    if (name.find("residual") == std::string::npos) continue;
    for (int64_t i = 0; i < item.value().numel(); ++i, ++coefficients) {
      EXPECT_NEAR(metrics.at("coefficient/" + name + "." + std::to_string(i)),
                  item.value()[i].item<double>(), 1e-6);
    }
  }
  EXPECT_GT(coefficients, 40U);
  EXPECT_EQ(metrics.size(), coefficients);
}

TEST(WeightMetrics, HoldTheNormOfEverySignal) {
  for (const char* name : {"ringformer/mt-base", "ringformer/mt-ablation-full-rank"}) {
    const TinyModel m(shrink(find_model(name).config()));
    const auto weights = m.network->named_parameters();
    const Metrics metrics = weight_metrics(*m.network);
    const std::string path = "decoder.signal.1.value";
    const Tensor* full = weights.find(path + ".full");
    const Tensor g =
        full != nullptr ? *full : at::matmul(weights[path + ".up"].t(), weights[path + ".down"]);
    EXPECT_NEAR(metrics.at("signal/" + path), g.norm().item<double>(), 1e-5) << name;
    EXPECT_EQ(metrics.count("coefficient/" + path), 0U);
  }
}

TEST(WeightMetrics, AreNoneOfAPlainNetwork) {
  const TinyModel m(shrink(find_model("ringformer/mt-base-vanilla").config()));
  EXPECT_TRUE(weight_metrics(*m.network).empty());
}

}  // namespace
}  // namespace rondo::test
