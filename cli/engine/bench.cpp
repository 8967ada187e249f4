// rondo bench: measures cases and compares them with this machine's limits.
#include <fmt/format.h>

#include "cli/engine/bench_data.h"
#include "cli/engine/bench_report.h"
#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "rondo/nn/torch.h"

namespace rondo::cli {
namespace {

constexpr const char* kProcessorNote =
    "times are CPU time divided by threads: waiting, even for other threads, does not count";

std::vector<BenchCase> chosen_cases(const BenchOptions& options) {
  if (!options.names.empty()) return find_bench_cases(options.names);
  std::vector<BenchCase> chosen;
  for (const BenchCase& c : bench_cases()) {
    if ((options.all && !c.by_name) || c.quick) chosen.push_back(c);
  }
  return chosen;
}

void list_cases(bool json) {
  nlohmann::json all = nlohmann::json::array();
  for (const BenchCase& c : bench_cases()) {
    if (json) {
      all.push_back({{"name", c.name}, {"about", c.about}, {"quick", c.quick}});
    } else {
      fmt::print("{:<14} {}{}\n", c.name, c.about, c.quick ? " (quick selection)" : "");
    }
  }
  if (json) fmt::print("{}\n", all.dump(2));
}

rondo::BenchOptions bench_settings(const BenchOptions& options, std::string& note) {
  rondo::BenchOptions settings;
  settings.measure.rounds = options.rounds;
  settings.peers = !options.no_peers;
  settings.peer.threads = at::get_num_threads();
  settings.peer.processor_time = options.processor_time;
  if (!options.python.empty()) settings.peer.python = options.python;
  settings.peer.folder = options.peers.empty() ? find_peers() : options.peers;
  if (settings.peers && settings.peer.folder.empty()) {
    settings.peers = false;
    note = "no folder bench/peers next to recipes/: no ratios to PyTorch (--peers FOLDER)";
  }
  return settings;
}

}  // namespace

void run_bench(const BenchOptions& options) {
  if (options.list) return list_cases(options.json);
  if (!options.data.empty()) return bench_data(options);
  if (!options.memory_of.empty()) {
    start_engine(options.compute);
    return fmt::print("{}\n", bench_memory_of(options.memory_of));
  }
  const std::vector<BenchCase> cases = chosen_cases(options);  // throws before measuring
  const MachineDescription machine = describe_machine();
  start_engine(options.compute);
  const int64_t threads = at::get_num_threads();
  if (options.processor_time) use_processor_time(threads);
  std::string note;
  const rondo::BenchOptions settings = bench_settings(options, note);
  const MachineLimits limits = measure_limits();
  nlohmann::json results = nlohmann::json::array();
  if (options.processor_time) note += (note.empty() ? "" : "; ") + std::string(kProcessorNote);
  if (!options.json) {
    fmt::print("{}{}", describe(machine, threads), describe(limits));
    if (!note.empty()) fmt::print("{}\n", note);
    std::fflush(stdout);
  }
  for (const BenchCase& c : cases) {
    const BenchResult result = c.run(settings);
    if (options.json) {
      results.push_back(to_json(result));
    } else {
      fmt::print("{}", describe(c, result));
      std::fflush(stdout);
    }
  }
  if (!options.json) return;
  const nlohmann::json whole = {{"machine", to_json(machine, threads)},
                                {"limits", to_json(limits)},
                                {"cases", results},
                                {"note", note}};
  fmt::print("{}\n", whole.dump(2));
}

}  // namespace rondo::cli
