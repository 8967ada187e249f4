// Command line of rondo bench.
#include "cli/bench_verbs.h"

#include "cli/engine_loader.h"
#include "cli/usage.h"
#include "cli/verbs.h"

namespace rondo::cli {
namespace {

void check_bench(const BenchOptions& o) {
  const int ways = int{!o.names.empty()} + int{o.all} + int{o.list} + int{!o.data.empty()};
  if (ways > 1) {
    throw Error(ExitCode::usage,
                "bench: names of cases, --all, --list and --data exclude each other",
                "give one of them, or none for the usual selection");
  }
  if (!o.set.empty() && o.data.empty()) {
    throw Error(ExitCode::usage,
                "bench: --set changes the configuration of --data, which is missing",
                "add --data CONFIG");
  }
}

}  // namespace

void add_bench_verbs(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  BenchOptions& o = *options;
  CLI::App* verb = app.add_subcommand(
      "bench", "how fast this machine trains and runs networks, and how near its limits");
  verb->add_option("names", o.names, "cases to measure (see --list); default: a quick selection");
  verb->add_flag("--all", o.all, "measure every case but step-time, which takes long");
  verb->add_flag("--list", o.list, "list the cases");
  verb->add_option("--data", o.data,
                   "instead: does the data of this training configuration keep up with its model?");
  verb->add_flag("--mini", o.mini, "with --data: the small size of the recipe");
  verb->add_option("--set", o.set, "with --data: change a key, for example data.train=FOLDER")
      ->take_all()
      ->expected(1);
  verb->add_option("--cache", o.cache,
                   "with --data: folder for tokenised text; default: the user's");
  verb->add_option("--rounds", o.rounds, "quiet rounds wanted; medians are over these")
      ->check(whole_number(5, 1000))
      ->capture_default_str();
  add_computing(verb, o.compute);
  verb->add_option("--peers", o.peers, "folder of the peers; default: bench/peers of the sources");
  verb->add_option("--python", o.python, "Python that runs them; default: the system's");
  verb->add_flag("--no-peers", o.no_peers, "do not compare with PyTorch");
  verb->add_flag("--processor-time", o.processor_time,
                 "for a machine that is never quiet: count the time that processors worked for us");
  verb->add_flag("--json", o.json, "print JSON");
  verb->add_option("--memory-of", o.memory_of)->group("");  // the program's own: not in the help
  verb->callback([options] {
    check_bench(*options);
    run_engine("rondo_engine_bench", *options);
  });
}

}  // namespace rondo::cli
