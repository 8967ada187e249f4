// Run folders as users look at them: what is in them, torch-free.
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
  std::string recipe;      // what it was started from; "" if it was not recorded
  int64_t parameters = 0;  // 0 if they were not recorded
  int64_t step = 0;        // the last one logged or saved
  double seconds = 0;      // of training
  double loss = 0;         // the last one logged
  std::optional<RunScore> last;
  std::optional<RunScore> best;
  std::vector<int64_t> checkpoints;  // newest first
  bool has_best = false;             // a best model
  bool running = false;
  int64_t bytes = 0;  // on disk
  std::string commit;
  std::string cpu;
  std::string started;
};

// Error{bad_input} if `path` is no run folder, or its configuration cannot be read.
RunSummary summarize_run(const std::string& path);

// The run folders in `folder` and below, sorted by path; those that cannot be read are named in a
// warning. Error{io} if the folder is not there.
std::vector<RunSummary> list_runs(const std::string& folder);

// Whether a trainer is at work in the folder.
bool is_running(const std::string& path);

// The command that puts a model to use.
std::string use_command(const std::string& path, const std::string& task);

// For lists, and all of it.
std::string runs_table(const std::vector<RunSummary>& runs);
std::string run_text(const RunSummary& run);
nlohmann::json run_json(const RunSummary& run);

}  // namespace rondo
