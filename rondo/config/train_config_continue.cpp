// Comparing a run's experiment with the one requested on resuming.
#include "rondo/config/train_config_continue.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/config/exported_model.h"
#include "rondo/config/trained_files.h"

namespace rondo {
namespace {

[[noreturn]] void refuse_change(const std::string& run, const std::string& what) {
  throw Error(ExitCode::bad_input,
              fmt::format("{}: the folder contains another experiment: {}", run, what),
              fmt::format("to resume this run: rondo train {}; for a new one choose another folder "
                          "with -o",
                          run));
}

// Whether a tokenizer equals the run's own copy, whatever its path.
bool is_kept_tokenizer(const std::string& run, const std::string& key, const RunConfig& now) {
  RunConfig copy = now;
  const std::string task = copy.model.task();
  for (const auto& [side, field] : tokenizer_fields(copy)) {
    const std::string name = side == "text" || side == "joint" ? "tokenizer" : side + "_tokenizer";
    const bool of_task = (side == "text") == (task == "lm");
    if (!of_task || key != "data." + name || !is_tokenizer_file(*field)) continue;
    const std::string kept = kept_tokenizer_path(run, side);
    return exists(kept) && exists(*field) &&
           read_tokenizer_model(kept, INT64_MAX) == read_tokenizer_model(*field, INT64_MAX);
  }
  return false;
}

}  // namespace

std::vector<DumpedKey> dumped_keys(const RunConfig& config) {
  std::vector<DumpedKey> keys;
  std::istringstream in(dump_run_config(config));
  std::string section;
  for (std::string line; std::getline(in, line);) {
    const size_t equals = line.find(" = ");
    if (!line.empty() && line.front() == '[' && line.back() == ']') {
      section = line.substr(1, line.size() - 2);
    } else if (equals != std::string::npos) {
      const std::string name = line.substr(0, equals);
      keys.push_back({fmt::format("{}.{}", section, name), name, line.substr(equals + 3)});
    }
  }
  return keys;
}

const std::vector<std::string>& changeable_keys() {
  static const std::vector<std::string> kKeys = {
      // Length of the run, and intervals. Under linear and cosine schedules, the learning rate of
      // the remaining steps depends on the number of steps.
      "train.steps", "train.log_every", "train.eval_every", "train.eval_tokens", "train.save_every",
      "train.keep", "train.patience", "train.probe_every",
      // Data locations. Training data is verified by content when the run restores its position;
      // evaluation data may be added or changed at any time. A resumed run needs neither its
      // initial weights nor the original path of its teacher.
      "data.train", "data.valid", "data.test", "train.start", "distill.teacher",
      // How it computes.
      "train.threads", "train.device", "train.precision", "train.recompute_levels",
      "train.reduce_precision", "train.shard_optimizer", "data.threads",
      // What a step does to the weights. Not optimizer.beta1, which decides whether Adafactor keeps
      // a first moment, nor train.ema, which decides whether there is a weight average.
      "train.clip", "train.accumulate", "train.label_smoothing", "optimizer.beta2",
      "optimizer.epsilon", "optimizer.weight_decay", "schedule.kind", "schedule.rate",
      "schedule.final_rate", "schedule.warmup"};
  return kKeys;
}

std::vector<ConfigChange> config_changes(const std::string& run, const RunConfig& before,
                                         const RunConfig& now) {
  const std::vector<DumpedKey> a = dumped_keys(before);
  const std::vector<DumpedKey> b = dumped_keys(now);
  const std::vector<std::string>& changeable = changeable_keys();
  std::vector<ConfigChange> changes;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].key == b[i].key && a[i].value == b[i].value) continue;
    const bool allowed = a[i].key == b[i].key && (std::find(changeable.begin(), changeable.end(),
                                                            a[i].key) != changeable.end() ||
                                                  is_kept_tokenizer(run, a[i].key, now));
    if (!allowed) {
      refuse_change(run, fmt::format("expected {} = {}, got {} = {}", a[i].name, a[i].value,
                                     b[i].name, b[i].value));
    }
    changes.push_back({a[i].key, a[i].value, b[i].value});
  }
  if (a.size() != b.size()) refuse_change(run, "the number of keys differs");
  return changes;
}

}  // namespace rondo
