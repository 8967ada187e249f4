// --kernels: fused kernels and plain operations give the same results through the command.
#include "tests/cli/authors.h"
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

// Runs both. For every output: the largest difference relative to its largest number (or, where
// sums cancel, to a share of the largest of all).
void expect_kernels_agree(const Authors& m, const Arrays& inputs, double tolerance) {
  const Arrays fused = m.forward(inputs, {"--gradients", "--kernels", "fused"});
  const Arrays plain = m.forward(inputs, {"--gradients", "--kernels", "reference"});
  ASSERT_EQ(fused.size(), plain.size());
  ASSERT_GT(plain.size(), 10u) << "logits, the loss and gradients";
  double most = 0;
  for (const auto& [name, array] : plain) most = std::max(most, largest(array));
  bool other_bits = false;
  for (const auto& [name, array] : plain) {
    const double unit = std::max(largest(array), 2e-2 * most);
    EXPECT_LE(max_difference(fused.at(name), array), tolerance * unit) << name;
    other_bits = other_bits || fused.at(name).bytes != array.bytes;
  }
  EXPECT_TRUE(other_bits) << "the option changed nothing";
}

TEST(KernelChoice, BothAgreeOnALanguageModel) {
  const Authors m("brt_fixed_skip", "meliad");
  const Array& tokens = m["step1/tokens"];
  const std::vector<double> numbers = tokens.numbers();
  const Array labels = whole(tokens.shape, {numbers.begin(), numbers.end()});
  expect_kernels_agree(m, {{"tokens", tokens}, {"labels", labels}}, 1e-5);
}

TEST(KernelChoice, BothAgreeOnATranslationModel) {
  const Authors m("ringformer_translation", "ringformer");
  expect_kernels_agree(m, {{"source", m["src"]}, {"target", m["trg"]}, {"labels", m["trg"]}}, 1e-5);
}

TEST(KernelChoice, BothTrainAlike) {
  const Trainee t;
  const auto losses = [&](const std::string& kernels) {
    t.train(kernels, {"--kernels", kernels, "--set", "model.dropout=0", "--set", "train.steps=8"});
    std::vector<double> found;
    for (const nlohmann::json& line : t.metrics(kernels)) {
      if (line.contains("loss")) found.push_back(line["loss"].get<double>());
    }
    return found;
  };
  const std::vector<double> fused = losses("fused");
  const std::vector<double> plain = losses("reference");
  ASSERT_EQ(fused.size(), plain.size());
  ASSERT_GE(plain.size(), 8u);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 1e-3) << i;
}

TEST(KernelChoice, EveryVerbThatComputesHasIt) {
  for (const char* verb : {"train", "eval", "generate", "translate", "classify", "forward"}) {
    EXPECT_TRUE(contains(rondo_ok({verb, "--help"}).out, "--kernels")) << verb;
    expect_refusal(rondo({verb, "x", "--kernels", "plain"}), ExitCode::usage,
                   "--kernels: plain not in {fused,reference}");
  }
}

}  // namespace
}  // namespace rondo::testing
