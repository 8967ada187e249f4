// Command line of rondo bench.
#include "cli/bench_verbs.h"

#include "cli/command_line.h"
#include "cli/engine_loader.h"
#include "cli/verbs.h"
#include "rondo/base/error.h"

namespace rondo::cli {
namespace {

void check_bench(const BenchOptions& o) {
  const int ways = int{!o.names.empty()} + int{o.all} + int{o.list} + int{!o.data.empty()};
  if (ways > 1) {
    throw Error(ExitCode::usage,
                "bench: case names, --all, --list and --data are mutually exclusive",
                "give one of them, or none for the quick selection");
  }
  if (!o.set.empty() && o.data.empty()) {
    throw Error(ExitCode::usage,
                "bench: --set overrides the configuration of --data, which is missing",
                "add --data CONFIG");
  }
}

}  // namespace

void add_bench_verbs(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* verb =
      add_verb(app,
               {"bench", "measure training and inference speed against this machine's limits",
                "rondo bench decode-lm translate --no-peers"},
               options);
  verb->callback([options, &exit_code] {
    check_bench(*options);
    exit_code = run_engine("bench", *options);
  });
}

}  // namespace rondo::cli
