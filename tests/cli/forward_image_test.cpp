// rondo forward on images: the authors' logits, losses and gradients through the command line;
// permutations, probes, training mode.
#include "tests/cli/authors.h"

namespace rondo::testing {
namespace {

Arrays ring_inputs(const Authors& m) { return {{"images", m["x"]}}; }

Arrays sret_inputs(const Authors& m, const std::string& permutations) {
  Arrays inputs = {{"images", m["x"]}};
  for (const auto& [number, p] : below(m.reference(), permutations))
    inputs["permutation." + number] = p;
  return inputs;
}

TEST(ForwardRingFormerVision, LogitsAlone) {
  const Authors m("ringformer_vision", "ringformer");
  const Arrays out = m.forward(ring_inputs(m));
  EXPECT_LE(max_difference(out.at("logits"), m["logits"]), kLogitsTolerance);
  EXPECT_EQ(out.size(), 1u);
}

TEST(ForwardRingFormerVision, LabelsGiveALossAndGradients) {
  const Authors m("ringformer_vision", "ringformer");
  Arrays inputs = ring_inputs(m);
  inputs["labels"] = m["labels"];
  Arrays out = m.forward(inputs);
  EXPECT_LE(max_difference(out.at("loss"), m["loss"]), kLogitsTolerance);
  EXPECT_TRUE(below(out, "gradient.").empty());
  out = m.forward(inputs, {"--gradients"});
  EXPECT_LE(max_difference(out.at("logits"), m["logits"]), kLogitsTolerance);
  EXPECT_LE(max_difference(out.at("loss"), m["loss"]), kLogitsTolerance);
  m.expect_gradients(out, "g/");
}

TEST(ForwardRingFormerVision, ConfigurationAndWeightsApart) {
  const Authors m("ringformer_vision", "ringformer");
  write_arrays(m.file("in.safetensors"), ring_inputs(m));
  rondo_ok({"forward", m.config(), "--weights", m.model(), "--input", m.file("in.safetensors"),
            "--output", m.file("out.safetensors")});
  EXPECT_LE(max_difference(read_arrays(m.file("out.safetensors")).at("logits"), m["logits"]),
            kLogitsTolerance);
}

TEST(ForwardRingFormerVision, ProbesAddMatchingActivations) {
  const Authors m("ringformer_vision", "ringformer");
  const Arrays out = m.forward(
      ring_inputs(m), {"--probe", "encoded", "--probe", "stack.level.?.mixing.probabilities"});
  EXPECT_LE(max_difference(out.at("logits"), m["logits"]), kLogitsTolerance);
  EXPECT_LE(max_difference(out.at("probe.encoded"), m["act/encoded"]), kLogitsTolerance);
  const Arrays probed = below(out, "probe.");
  EXPECT_EQ(probed.size(), 4u);  // encoded, and three levels
  const Array& p = probed.at("stack.level.2.mixing.probabilities");
  ASSERT_EQ(p.shape, (std::vector<int64_t>{2, 4, 17, 17}));
  const std::vector<double> values = p.numbers();
  for (size_t row = 0; row < values.size(); row += 17) {
    double sum = 0;
    for (size_t i = 0; i < 17; ++i) sum += values[row + i];
    ASSERT_NEAR(sum, 1.0, 1e-5);
  }
}

TEST(ForwardRingFormerVision, DropoutOnlyInTrainingAndByTheSeed) {
  const Authors m("ringformer_vision", "ringformer");
  Arrays inputs = ring_inputs(m);
  inputs["labels"] = m["labels"];
  const Arrays one = m.forward(inputs, {"--train", "--seed", "1"});
  const Arrays again = m.forward(inputs, {"--train", "--seed", "1"});
  const Arrays other = m.forward(inputs, {"--train", "--seed", "2"});
  EXPECT_EQ(one.at("logits").bytes, again.at("logits").bytes);
  EXPECT_NE(one.at("logits").bytes, other.at("logits").bytes);
  EXPECT_GT(max_difference(one.at("logits"), m["logits"]), 1e-3);
  EXPECT_FALSE(below(one, "gradient.").empty());
}

TEST(ForwardSret, TheAuthorsPermutations) {
  const Authors m("sret_mini", "sret");
  EXPECT_LE(max_difference(m.forward(sret_inputs(m, "perm/")).at("logits"), m["logits_eval"]),
            kLogitsTolerance);
  EXPECT_LE(max_difference(m.forward(sret_inputs(m, "perm_other/")).at("logits"),
                           m["logits_eval_otherperm"]),
            kLogitsTolerance);
}

TEST(ForwardSret, ActivationsOfEveryStage) {
  const Authors m("sret_mini", "sret");
  const Arrays out = m.forward(sret_inputs(m, "perm/"), {"--probe", "*.map", "--probe", "features",
                                                         "--probe", "stage.0.level.*"});
  const auto near = [&](const std::string& ours, const std::string& theirs) {
    const Array& want = m["act/" + theirs];
    EXPECT_LE(max_difference(out.at("probe." + ours), want) / largest(want), kLogitsTolerance)
        << ours;
  };
  near("stem.map", "stem");
  near("stage.0.map", "stage0");
  near("pool.0.map", "pool0");
  near("stage.1.map", "stage1");
  near("pool.1.map", "pool1");
  near("stage.2.map", "stage2");
  near("features", "features_normed");
  near("stage.0.level.3.block", "stage0_step6");
  near("stage.0.level.3.output", "stage0_step7");
}

TEST(ForwardSret, TrainingLogitsLossGradientsAndBuffers) {
  const Authors m("sret_mini", "sret");
  Arrays inputs = sret_inputs(m, "perm/");
  inputs["labels"] = m["labels"];
  const Arrays out = m.forward(inputs, {"--train"});
  EXPECT_LE(max_difference(out.at("logits"), m["logits_train"]), kLogitsTolerance);
  EXPECT_LE(max_difference(out.at("loss"), m["loss_train"]), kLogitsTolerance);
  m.expect_gradients(out, "g/");
  int64_t compared = 0;
  for (int i = 0; i < 3; ++i) {
    for (const char* what : {"running_mean", "running_var", "num_batches_tracked"}) {
      const std::string ours = "buffer.stem.norm" + std::to_string(i) + "." + what;
      const Array& want = m["b_after_train/patch_embed.bn" + std::to_string(i + 1) + "." + what];
      EXPECT_LE(max_difference(out.at(ours), want) / largest(want), 1e-6) << ours;
      ++compared;
    }
  }
  EXPECT_EQ(compared, static_cast<int64_t>(below(out, "buffer.").size()));
}

TEST(ForwardSret, WithoutPermutationsTheAnswerRepeats) {
  const Authors m("sret_mini", "sret");
  const Arrays inputs = {{"images", m["x"]}};
  const std::vector<uint8_t> one = m.forward(inputs).at("logits").bytes;
  EXPECT_EQ(one, m.forward(inputs, {"--seed", "2"}).at("logits").bytes);
  const std::string random = "model.depth.recursive.eval_permutation=random";
  const auto drawn = [&](const char* seed) {
    return m.forward(inputs, {"--set", random, "--seed", seed}).at("logits").bytes;
  };
  EXPECT_EQ(drawn("3"), drawn("3"));
  EXPECT_NE(drawn("3"), drawn("4"));
}

TEST(ForwardDrawnWeights, AreAFunctionOfTheSeed) {
  const TempDir folder;
  write_arrays(folder.file("in.safetensors"), {{"images", ramp({1, 3, 32, 32})}});
  const auto logits = [&](const char* seed) {
    rondo_ok({"forward", fixture("ringformer_vision.toml"), "--seed", seed, "--input",
              folder.file("in.safetensors"), "--output", folder.file("out.safetensors")});
    return read_arrays(folder.file("out.safetensors")).at("logits").bytes;
  };
  EXPECT_EQ(logits("5"), logits("5"));
  EXPECT_NE(logits("5"), logits("6"));
}

}  // namespace
}  // namespace rondo::testing
