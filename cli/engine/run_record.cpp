// Writes run.json.
#include "cli/engine/run_record.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/limits.h"
#include "rondo/base/files.h"
#include "rondo/base/version.h"
#include "rondo/model/cost.h"

namespace rondo::cli {
namespace {

constexpr int64_t kMaxRecordBytes = int64_t{1} << 20;
constexpr size_t kMaxStarts = 1000;

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

nlohmann::json this_start() {
  return {{"rondo", kVersion},
          {"commit", build_commit()},
          {"libtorch", TORCH_VERSION},
          {"cpu", describe_machine().cpu},
          {"threads", at::get_num_threads()},
          {"time", now_utc()}};
}

}  // namespace

void write_run_record(const std::string& folder, const RunConfig& config, const Task& task,
                      const std::string& recipe) {
  const std::string file = folder + "/run.json";
  nlohmann::json record;
  if (exists(file)) {
    record = nlohmann::json::parse(read_text_file(file, kMaxRecordBytes), nullptr, false);
  }
  if (record.is_object()) {
    nlohmann::json& continued = record["continued"];
    if (!continued.is_array()) continued = nlohmann::json::array();
    if (continued.size() < kMaxStarts) continued.push_back(this_start());
  } else {
    const Cost cost = measure_cost(config.model);
    record = this_start();
    record["recipe"] = recipe;
    record["parameters"] = cost.parameters;
    record["parameters_without_embeddings"] = cost.without_embeddings;
    record["multiply_adds"] = cost.multiply_adds;
    record["train_data"] = task.data_checksum();
  }
  write_file(file, record.dump(2) + "\n");
}

}  // namespace rondo::cli
