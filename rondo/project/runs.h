// Summaries of run folders, torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rondo/config/train_config.h"

namespace rondo {

// A score on validation data.
struct RunScore {
  std::string metric;  // "valid_bits_per_byte"
  double value = 0;
  int64_t step = 0;
};

struct RunSummary {
  std::string path;
  RunConfig config;
  std::string recipe;      // that it was started from; "" if not recorded
  int64_t parameters = 0;  // 0 if not recorded
  int64_t step = 0;        // the last one logged or saved
  double seconds = 0;      // of training
  double loss = 0;         // the last one logged
  std::optional<RunScore> last;
  std::optional<RunScore> best;
  std::vector<int64_t> checkpoints;  // newest first
  bool has_best = false;             // a best model exists
  bool running = false;
  int64_t bytes = 0;  // on disk
  std::string commit;
  std::string cpu;
  std::string started;
};

// Throws Error{bad_input} if `path` is not a run folder or its configuration is invalid.
RunSummary summarize_run(const std::string& path);

// The run folders in `folder`, recursively, sorted by path; logs a warning for those that cannot be
// read. Throws Error{io} if the folder does not exist.
std::vector<RunSummary> list_runs(const std::string& folder);

// Whether a training process is using the folder.
bool is_running(const std::string& path);

// The command that uses a model.
std::string use_command(const std::string& path, const std::string& task);

// A validation score, as in "accuracy 91.20"; "" if there is none.
std::string run_score_text(const std::optional<RunScore>& score);

// A list of runs, and one run in full.
std::string runs_table(const std::vector<RunSummary>& runs);
std::string run_text(const RunSummary& run);
nlohmann::json run_json(const RunSummary& run);

}  // namespace rondo
