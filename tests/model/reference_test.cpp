// Our networks compute the same functions as the programs published by the papers' authors: logits,
// intermediate activations, gradients, carried states and buffers at small sizes.
#include "tests/support/reference.h"

namespace rondo::test {
namespace {

constexpr double kLogits = 2e-6;
constexpr double kGradients = 1e-5;

// Keeps the observed activations.
class Recorder : public Observer {
 public:
  bool wants(const std::string& /*name*/) override { return true; }
  void activation(const std::string& name, const Tensor& value) override { seen[name] = value; }
  NamedTensors seen;
};

TEST(ReferenceRingFormer, VisionLogitsAndGradients) {
  ReferenceModel m("ringformer_vision", "ringformer");
  NamedTensors in = {{"images", m.reference["x"]}, {"labels", m.reference["labels"]}};
  State state;
  Recorder recorder;
  const NamedTensors out = m.network->forward(in, state, Scope(&recorder));
  EXPECT_LE(max_difference(out.at("logits"), m.reference["logits"]), kLogits);
  EXPECT_LE(max_difference(recorder.seen.at("encoded"), m.reference["act/encoded"]), kLogits);
  const Tensor loss = m.network->loss(in, out);
  EXPECT_LE(max_difference(loss, m.reference["loss"]), kLogits);
  loss.backward();
  expect_gradients(*m.network, m.expected_gradients("g/"), kGradients);
}

TEST(ReferenceRingFormer, TranslationLogitsAndGradients) {
  ReferenceModel m("ringformer_translation", "ringformer");
  const Tensor target = m.reference["trg"];
  // The label of a position is the next target token; the last one has none.
  const Tensor labels = at::zeros_like(target);
  labels.narrow(1, 0, target.size(1) - 1).copy_(target.narrow(1, 1, target.size(1) - 1));
  NamedTensors in = {{"source", m.reference["src"]}, {"target", target}, {"labels", labels}};
  State state;
  const NamedTensors out = m.network->forward(in, state, Scope());
  EXPECT_LE(max_difference(out.at("logits"), m.reference["logits"]), kLogits);
  const Tensor loss = m.network->loss(in, out);
  EXPECT_LE(max_difference(loss, m.reference["loss"]), kLogits);
  loss.backward();
  expect_gradients(*m.network, m.expected_gradients("g/"), kGradients);
}

NamedTensors sret_inputs(const Reference& r, const std::string& permutations) {
  NamedTensors in = {{"images", r["x"]}, {"labels", r["labels"]}};
  for (const auto& [number, p] : r.below(permutations)) in["permutation." + number] = p;
  return in;
}

TEST(ReferenceSret, EvaluationLogitsAndActivations) {
  ReferenceModel m("sret_mini", "sret");
  State state;
  Recorder recorder;
  const NamedTensors out =
      m.network->forward(sret_inputs(m.reference, "perm/"), state, Scope(&recorder));
  EXPECT_LE(max_difference(out.at("logits"), m.reference["logits_eval"]), kLogits);
  const auto near = [&](const std::string& ours, const std::string& theirs) {
    EXPECT_LE(relative_difference(recorder.seen.at(ours), m.reference["act/" + theirs]), kLogits)
        << theirs;
  };
  near("stem.map", "stem");
  near("stage.0.map", "stage0");
  near("pool.0.map", "pool0");
  near("stage.1.map", "stage1");
  near("pool.1.map", "pool1");
  near("stage.2.map", "stage2");
  near("features", "features_normed");
  for (int64_t level = 0; level < 4; ++level) {
    const std::string at = "stage.0.level." + std::to_string(level);
    near(at + ".block", "stage0_step" + std::to_string(2 * level));
    near(at + ".output", "stage0_step" + std::to_string(2 * level + 1));
  }
}

TEST(ReferenceSret, OtherPermutations) {
  ReferenceModel m("sret_mini", "sret");
  State state;
  const NamedTensors out =
      m.network->forward(sret_inputs(m.reference, "perm_other/"), state, Scope());
  EXPECT_LE(max_difference(out.at("logits"), m.reference["logits_eval_otherperm"]), kLogits);
}

TEST(ReferenceSret, TrainingLogitsGradientsAndBuffers) {
  ReferenceModel m("sret_mini", "sret");
  m.network->train();
  const NamedTensors in = sret_inputs(m.reference, "perm/");
  State state;
  const NamedTensors out = m.network->forward(in, state, Scope());
  EXPECT_LE(max_difference(out.at("logits"), m.reference["logits_train"]), kLogits);
  const Tensor loss = m.network->loss(in, out);
  EXPECT_LE(max_difference(loss, m.reference["loss_train"]), kLogits);
  loss.backward();
  expect_gradients(*m.network, m.expected_gradients("g/"), kGradients);
  for (const auto& item : m.network->named_buffers()) {
    const Source source = m.layout->source(item.key());
    const Tensor want = m.reference["b_after_train/" + source.names.front()];
    EXPECT_LE(relative_difference(item.value(), want), 1e-6) << item.key();
  }
}

class ReferenceBlockRecurrent : public ::testing::TestWithParam<const char*> {};

// The authors' name of a cached tensor for our state's "level.1.keys".
std::string cached_name(const std::string& step, const std::string& ours) {
  const NameParts p(ours);
  const std::string kind = p[2] == "state" ? "recurrent_state" : "previous_" + p[2];
  return step + "/state/decoder/transformer" + p[1] + "/" + kind + "_test";
}

TEST_P(ReferenceBlockRecurrent, ThreeSegments) {
  ReferenceModel m(GetParam(), "meliad");
  State state;
  for (const std::string step : {"step1", "step2", "step3"}) {
    NamedTensors in = {{"tokens", m.reference[step + "/tokens"]},
                       {"reset", m.reference[step + "/start_of_sequence"]}};
    const Tensor tokens = in.at("tokens").to(at::kLong);
    const Tensor labels = at::full_like(tokens, -1);
    const int64_t scored = tokens.size(1) - 1;
    labels.narrow(1, 0, scored).copy_(tokens.narrow(1, 1, scored));
    in["labels"] = labels;
    m.network->zero_grad();
    const NamedTensors out = m.network->forward(in, state, Scope());
    EXPECT_LE(max_difference(out.at("logits"), m.reference[step + "/logits"]), kLogits) << step;
    const Tensor sum = m.network->loss(in, out) * static_cast<double>(scored * tokens.size(0));
    EXPECT_LE(relative_difference(sum, m.reference[step + "/loss_sum"]), 1e-6) << step;
    int64_t compared = 0;
    for (const auto& [name, tensor] : state.tensors()) {
      if (name.rfind("level.", 0) != 0) continue;
      EXPECT_LE(max_difference(tensor, m.reference[cached_name(step, name)]), kLogits)
          << step << " " << name;
      ++compared;
    }
    EXPECT_GE(compared, 8);
    if (step == "step2") {
      sum.backward();
      expect_gradients(*m.network, m.expected_gradients("g_step2/"), kGradients);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Authors, ReferenceBlockRecurrent,
                         ::testing::Values("brt_slide", "brt_fixed_skip", "brt_lstm_dual"));

}  // namespace
}  // namespace rondo::test
