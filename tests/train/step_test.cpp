// One optimizer step of the engine against the expected result: accumulated batches equal a large
// batch, clipping, averaging and smoothed labels follow their formulas, and what weight decay
// leaves out.
#include "rondo/train/optimizer.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

NamedTensors cloned_tensors(const NamedTensors& tensors) {
  NamedTensors out;
  for (const auto& [name, tensor] : tensors) out[name] = tensor.detach().clone();
  return out;
}

// The network's weights after running `config` with batches of `rows`.
NamedTensors weights_after(const RunConfig& config, int64_t rows) {
  const QuietLog quiet;
  const testing::TempDir folder;
  const auto task = scripted_language(config, rows);
  RunFolder run(folder.file("run"), config);
  EXPECT_EQ(train(*task, config, run), 0);
  return cloned_tensors(named_tensors(task->network()));
}

TEST(TrainingStep, AccumulatedBatchesAreALargeBatch) {
  for (const char* kind : {"adam", "adamw", "adafactor"}) {
    RunConfig config = scripted_run();
    config.optimizer.kind = kind;
    config.optimizer.epsilon =
        1e-3;  // near zero gradients Adam is a sign function: rounding would show
    config.train.steps = 3;
    const NamedTensors whole = weights_after(config, 8);
    for (const int64_t parts : {2, 4, 8}) {
      SCOPED_TRACE(std::string(kind) + " in " + std::to_string(parts));
      config.train.accumulate = parts;
      expect_near_tensors(weights_after(config, 8 / parts), whole, 1e-6);
    }
    config.train.accumulate = 1;
    const Tensor half = weights_after(config, 4).at("embedding");
    EXPECT_GT((half - whole.at("embedding")).abs().max().item<double>(), 1e-4) << kind;
  }
}

// Adam's first step with a large epsilon, so that the size of the gradient matters.
TEST(TrainingStep, ClipsTheNormOfTheWholeGradient) {
  RunConfig config = scripted_run();
  config.optimizer.epsilon = 1.0;
  const auto plain = scripted_language(config, 8);
  const LossSum loss = plain->next_loss();
  (loss.sum / static_cast<double>(loss.count)).backward();
  double squares = 0;
  for (const auto& item : plain->network().named_parameters()) {
    squares += item.value().grad().square().sum().item<double>();
  }
  const double norm = std::sqrt(squares);
  for (const double clip : {0.0, 0.5 * norm, 2.0 * norm}) {
    config.train.clip = clip;
    const double scale = clip > 0.0 && clip < norm ? clip / norm : 1.0;
    const NamedTensors got = weights_after(config, 8);
    for (const auto& item : plain->network().named_parameters()) {
      const Tensor g = item.value().grad() * scale;
      const Tensor want = item.value().detach() - config.schedule.rate * g / (g.abs() + 1.0);
      expect_near(got.at(item.key()), want, 1e-6, item.key() + " at " + std::to_string(clip));
    }
  }
}

TEST(TrainingStep, LogsTheNormFromBeforeClipping) {
  const QuietLog quiet;
  std::vector<double> norms;
  for (const double clip : {0.0, 1e-3}) {
    RunConfig config = scripted_run();
    config.train.clip = clip;
    const testing::TempDir folder;
    const auto task = scripted_language(config, 8);
    RunFolder run(folder.path(), config);
    train(*task, config, run);
    norms.push_back(metrics_of(folder.path()).at(0).at("gradient_norm"));
  }
  EXPECT_GT(norms[0], 1e-3);
  EXPECT_DOUBLE_EQ(norms[0], norms[1]);
}

TEST(TrainingStep, FollowsTheSchedule) {
  RunConfig config = scripted_run();
  config.schedule.kind = "linear";
  config.schedule.warmup = 2;
  config.train.steps = 5;
  const QuietLog quiet;
  const testing::TempDir folder;
  const auto task = scripted_language(config, 8);
  RunFolder run(folder.path(), config);
  train(*task, config, run);
  const auto lines = metrics_of(folder.path());
  ASSERT_EQ(lines.size(), 5U);
  for (int64_t step = 1; step <= 5; ++step) {
    EXPECT_DOUBLE_EQ(lines[static_cast<size_t>(step - 1)].at("rate"),
                     learning_rate(config.schedule, step, 5));
  }
}

// ---- the average of the weights ---------------------------------------------------------------

TEST(WeightAverage, EqualsALoopOverTheCheckpoints) {
  const QuietLog quiet;
  RunConfig config = scripted_run();
  config.train.steps = 7;
  config.train.ema = 0.8;
  const testing::TempDir folder;
  const auto task = scripted_language(config, 4);
  NamedTensors average = cloned_tensors(named_tensors(task->network()));
  RunFolder run(folder.path(), config);
  train(*task, config, run);
  for (int64_t step = 1; step <= 7; ++step) {
    const Checkpoint c = load_checkpoint(run.checkpoints().path(step));
    for (auto& [name, mean] : average) mean = mean * 0.8 + c.tensors.at("weight." + name) * 0.2;
    expect_near_tensors(c.below("average."), average, 1e-6);
  }
  // Evaluation and best.safetensors use the average; training continues with the weights.
  expect_near_tensors(load_tensors(run.best_path()), average, 1e-6);
  const Checkpoint last = load_checkpoint(run.checkpoints().path(7));
  expect_identical_tensors(cloned_tensors(named_tensors(task->network())), last.below("weight."));
  EXPECT_GT(
      (average.at("embedding") - last.tensors.at("weight.embedding")).abs().max().item<double>(),
      1e-3);
}

TEST(WeightAverage, IsInPlaceOnlyWhileItLives) {
  const RunConfig config = scripted_run();
  const auto task = scripted_language(config, 4);
  const NamedTensors before = cloned_tensors(named_tensors(task->network()));
  NamedTensors average;
  for (const auto& [name, tensor] : before) average[name] = tensor + 1.0;
  {
    const AveragedWeights averaged(task->network(), average);
    expect_identical_tensors(cloned_tensors(named_tensors(task->network())), average);
  }
  expect_identical_tensors(cloned_tensors(named_tensors(task->network())), before);
  const AveragedWeights nothing(task->network(), {});
  expect_identical_tensors(cloned_tensors(named_tensors(task->network())), before);
}

// ---- smoothed labels --------------------------------------------------------------------------

// -Σ q log p, where q is 1 - s + s/V for the label and s/V for the others.
double smoothed_loss(const Tensor& logits, const Tensor& labels, double smoothing) {
  const Tensor logs = at::log_softmax(logits.to(at::kDouble), -1);  // [n, V]
  const int64_t classes = logits.size(1);
  double total = 0;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    const int64_t label = labels[i].item<int64_t>();
    for (int64_t c = 0; c < classes && label >= 0; ++c) {
      const double q =
          smoothing / static_cast<double>(classes) + (c == label ? 1.0 - smoothing : 0.0);
      total -= q * logs[i][c].item<double>();
    }
  }
  return total;
}

TEST(LabelSmoothing, IsItsFormula) {
  const Tensor logits = at::randn({9, 7}, nn::counter_generator(1, "logits"), at::kFloat);
  const Tensor labels = at::tensor({0, 6, 3, -1, 2, 2, -1, 5, 1}, at::kLong);
  for (const double smoothing : {0.0, 0.1, 0.9}) {
    const LossSum loss = sum_cross_entropy(logits, labels, -1, smoothing);
    EXPECT_EQ(loss.count, 7);
    EXPECT_NEAR(loss.sum.item<double>(), smoothed_loss(logits, labels, smoothing), 1e-4);
  }
}

TEST(LabelSmoothing, IsWhatALanguageTaskTrainsWith) {
  const TrainingFixture fixture;
  RunConfig config = tiny_run(fixture);
  language_of(config).dropout = 0.0;
  std::vector<double> losses;
  for (const double smoothing : {0.0, 0.3}) {
    config.train.label_smoothing = smoothing;
    LanguageTask task(config, fixture.cache());
    task.network().train();
    SegmentReader reader(task.documents(), {3, 12, 1, true, true, kBytePadding});
    SegmentBatch batch;
    reader.next(batch);
    const SegmentTensors t(batch);
    State state;
    const at::NoGradGuard no_grad;
    const Tensor logits =
        dynamic_cast<LanguageModel&>(task.network()).forward_tokens(t.tokens, state, Scope());
    const LossSum loss = task.next_loss();
    EXPECT_EQ(loss.count, batch.scored);
    EXPECT_NEAR(loss.sum.item<double>(),
                smoothed_loss(logits.flatten(0, 1), t.labels.flatten(), smoothing), 1e-3);
    losses.push_back(loss.sum.item<double>());
  }
  EXPECT_GT(std::abs(losses[0] - losses[1]), 1e-2);
}

// ---- weight decay -----------------------------------------------------------------------------

bool is_map(const std::string& name) {
  for (const char* map : {"projections", "state_query", "token_query", "feed_forward.", "gate.",
                          "cell.up", "cell.down", "attention_gate"}) {
    if (name.find(map) != std::string::npos) return true;
  }
  return false;
}

// With zero gradients only decay moves a weight.
TEST(WeightDecayGroups, OfANetworkAreItsMapsAlone) {
  LanguageModelConfig model = tiny_language("feedback");
  model.time.gate = "lstm";
  model.time.configuration = "dual";
  auto network = build_network(ModelConfig{model});
  nn::initialize(*network, 1);
  OptimizerConfig config;
  config.kind = "adamw";
  config.weight_decay = 0.5;
  const NamedTensors before = cloned_tensors(named_tensors(*network));
  const auto optimizer = make_optimizer(config, *network);
  for (const auto& item : network->named_parameters()) {
    item.value().mutable_grad() = at::zeros_like(item.value());
  }
  optimizer->step(1, 0.1);
  int64_t decayed = 0;
  for (const auto& [name, was] : before) {
    const Tensor now = named_tensors(*network).at(name).detach();
    const bool decays = is_map(name) && was.dim() >= 2;
    expect_near(now, decays ? was * 0.95 : was, 1e-6, name);
    decayed += decays ? 1 : 0;
  }
  EXPECT_GT(decayed, 15);
  EXPECT_LT(decayed, static_cast<int64_t>(before.size()));
}

}  // namespace
}  // namespace rondo::test
