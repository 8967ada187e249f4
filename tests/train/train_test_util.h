// Shared by the tests of training: a folder with documents, a tiny experiment on them, a scripted
// task, and inspecting the results of a run.
#pragma once

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rondo/base/log.h"
#include "rondo/train/language_task.h"
#include "rondo/train/trainer.h"
#include "tests/base/base_test_util.h"
#include "tests/support/expect.h"

namespace rondo::test {

// During its lifetime, only errors are shown.
class QuietLog {
 public:
  QuietLog() { init_log(-2); }
  ~QuietLog() { init_log(0); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;
};

// A folder with documents, a cache and room for runs.
class TrainingFixture {
 public:
  // Documents of these lengths, all different but with some structure to learn.
  explicit TrainingFixture(const std::vector<int64_t>& lengths = {70, 33, 150, 16, 2, 41}) {
    std::filesystem::create_directories(texts());
    for (size_t i = 0; i < lengths.size(); ++i) write(i, made_up(lengths[i], i));
  }
  void write(size_t number, const std::string& text) const {
    testing::spill(texts() + "/" + std::to_string(number) + ".txt", text);
  }
  std::string texts() const { return folder_.file("texts"); }
  std::string cache() const { return folder_.file("cache"); }
  std::string run(const std::string& name) const { return folder_.file(name); }

  static std::string made_up(int64_t length, size_t number) {
    std::string text;
    for (int64_t i = 0; i < length; ++i) {
      text += static_cast<char>('a' + (i * i + 3 * static_cast<int64_t>(number)) % 13);
    }
    return text;
  }

 private:
  testing::TempDir folder_;
  QuietLog quiet_;
};

inline LanguageModelConfig tiny_language(const std::string& kind) {
  LanguageModelConfig c;
  c.width = 16;
  c.hidden = 24;
  c.heads = 2;
  c.head_width = 6;
  c.dropout = 0.1;
  c.depth.levels = 2;
  c.time.kind = kind;
  c.time.window = 4;
  c.time.segment = 12;
  c.time.states = 3;
  c.time.recurrent_layers = {2};
  c.time.memory_layer = 2;
  c.time.memory_size = 10;
  c.time.neighbors = 3;
  return c;
}

// Six steps of a fraction of a second, saved only at the end, at a constant rate.
inline RunConfig tiny_run(const TrainingFixture& fixture,
                          const std::string& kind = "block-recurrent") {
  RunConfig c;
  c.model = ModelConfig{tiny_language(kind)};
  c.data.train = fixture.texts();
  c.train.steps = 6;
  c.train.batch = 3;
  c.train.log_every = 1;
  c.train.eval_every = 0;
  c.train.save_every = 1000;
  c.train.probe_every = 0;
  c.schedule.kind = "constant";
  c.schedule.rate = 0.01;
  return c;
}

inline LanguageModelConfig& language_of(RunConfig& config) {
  return std::get<LanguageModelConfig>(config.model.network);
}

// The newest checkpoint of a run folder.
inline Checkpoint newest_checkpoint(const std::string& run) {
  const auto found = CheckpointFolder(run + "/checkpoints").newest();
  if (!found.has_value()) {
    ADD_FAILURE() << run << ": no checkpoint";
    return {};
  }
  return found->checkpoint;
}

// Trains a language model in `run`, new or continued; returns the exit code.
inline int train_language(const TrainingFixture& fixture, const RunConfig& config,
                          const std::string& run) {
  LanguageTask task(config, fixture.cache());
  RunFolder folder(run, config);
  return train(task, config, folder);
}

// The same in a separate folder, from beginning to end.
inline Checkpoint trained(const TrainingFixture& fixture, const RunConfig& config,
                          const std::string& name) {
  EXPECT_EQ(train_language(fixture, config, fixture.run(name)), 0);
  return newest_checkpoint(fixture.run(name));
}

inline void expect_identical_tensors(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (const auto& [name, tensor] : a) {
    ASSERT_EQ(b.count(name), 1U) << name;
    expect_identical(tensor, b.at(name), name);
  }
}

inline void expect_near_tensors(const NamedTensors& a, const NamedTensors& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (const auto& [name, tensor] : a) expect_near(tensor, b.at(name), tolerance, name);
}

// Lines of metrics.jsonl without what depends on the clock.
inline std::vector<nlohmann::json> metrics_of(const std::string& run) {
  std::istringstream in(testing::slurp(run + "/metrics.jsonl"));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    json.erase("seconds");
    json.erase("tokens_per_second");
    json.erase("rows_per_second");
    lines.push_back(std::move(json));
  }
  return lines;
}

// ---- tasks ------------------------------------------------------------------------------------

// Rows of fixed inputs through any network, `rows` in each batch, and what the script adds.
class ScriptedTask : public Task {
 public:
  ScriptedTask(std::shared_ptr<Network> network, NamedTensors inputs, int64_t rows)
      : network_(std::move(network)), inputs_(std::move(inputs)), rows_(rows) {}

  std::string data_checksum() const override { return "scripted"; }

  std::function<double(int64_t call)> factor;  // of the loss of that call, from 1; NAN makes it NaN
  std::function<void(int64_t call)> before;    // each batch
  std::function<void(int64_t call, int64_t batch)> in_evaluation;  // of three batches each
  std::vector<double>
      selections;  // of the evaluations in order, as far as they finish; empty: none
  std::vector<int64_t> forgotten;  // calls after which forget_last() was called
  size_t evaluations = 0;          // that finished
  int64_t evaluated_batches = 0;
  NamedTensors evaluated;  // the weights of the last evaluation

  Network& network() override { return *network_; }
  LossSum next_loss() override {
    ++calls_;
    if (before) before(calls_);
    const int64_t all = inputs_.begin()->second.size(0);
    NamedTensors batch;
    for (const auto& [name, tensor] : inputs_) {
      batch[name] = tensor.narrow(0, (calls_ - 1) * rows_ % all, rows_);
    }
    State state;
    const Tensor logits = network_->forward(batch, state, Scope()).at("logits");
    LossSum loss = sum_cross_entropy(logits, batch.at("labels"));
    if (factor) loss.sum = loss.sum * factor(calls_);
    return loss;
  }
  void forget_last() override { forgotten.push_back(calls_); }
  double units_per_batch() const override { return static_cast<double>(rows_); }
  const char* unit() const override { return "rows"; }
  std::optional<Evaluation> evaluate(const StopCheck& stop) override {
    if (selections.empty()) return std::nullopt;
    for (int64_t batch = 1; batch <= 3; ++batch) {
      if (stop && stop()) return Evaluation{{{"valid", -1.0}}, -1.0};
      if (in_evaluation) in_evaluation(calls_, batch);
      ++evaluated_batches;
    }
    evaluated.clear();
    for (const auto& [name, tensor] : named_tensors(*network_)) {
      evaluated[name] = tensor.detach().clone();
    }
    const double value = selections.at(evaluations++ % selections.size());
    return Evaluation{{{"valid", value}}, value};
  }
  std::string position() const override { return std::to_string(calls_); }
  NamedTensors carried() const override { return {}; }
  void restore(const std::string& position, const NamedTensors& /*carried*/,
               bool /*other_rows*/) override {
    calls_ = std::stoll(position);
  }

 private:
  std::shared_ptr<Network> network_;
  NamedTensors inputs_;
  int64_t rows_;
  int64_t calls_ = 0;
};

// The task's evaluation asks between batches whether to continue, and stops if not.
inline void expect_stops_between_batches(Task& task) {
  task.network().eval();
  int64_t asked = 0;
  const auto whole = task.evaluate([&] { return ++asked == 0; });
  ASSERT_TRUE(whole.has_value());
  EXPECT_GT(asked, 2);
  EXPECT_EQ(task.evaluate({})->selection, whole->selection);
  asked = 0;
  task.evaluate([&] { return ++asked == 2; });
  EXPECT_EQ(asked, 2);
}

// Tokens with labels, of which some rows score fewer.
inline NamedTensors labeled_tokens(int64_t rows, int64_t length, int64_t vocabulary) {
  const Tensor tokens =
      at::randint(0, vocabulary, {rows, length}, nn::counter_generator(3, "tokens"), at::kLong);
  const Tensor labels = tokens.roll(-1, 1).clone();
  for (int64_t row = 0; row < rows; ++row) labels[row].narrow(0, 0, row % length).fill_(-1);
  return {{"tokens", tokens}, {"labels", labels}};
}

// A tiny language model on eight rows of tokens, `rows` in each batch, with dropout as in `config`.
inline std::unique_ptr<ScriptedTask> scripted_language(const RunConfig& config, int64_t rows) {
  auto network = build_network(config.model);
  nn::initialize(*network, static_cast<uint64_t>(config.train.seed));
  return std::make_unique<ScriptedTask>(std::move(network), labeled_tokens(8, 6, 40), rows);
}

inline RunConfig scripted_run() {
  RunConfig c;
  LanguageModelConfig model = tiny_language("window");
  model.vocabulary = 40;
  model.dropout = 0.0;
  c.model = ModelConfig{model};
  c.train.steps = 1;
  c.train.log_every = 1;
  c.train.eval_every = 0;
  c.train.save_every = 1;
  c.train.keep = 1000;
  c.train.clip = 0.0;
  c.schedule.kind = "constant";
  c.schedule.rate = 0.01;
  c.optimizer.kind = "adam";
  return c;
}

}  // namespace rondo::test
