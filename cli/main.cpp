// The command `rondo`: reads the command line, runs one verb, turns errors into one message and the
// right exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "cli/bench_verbs.h"
#include "cli/command_line.h"
#include "cli/data_verbs.h"
#include "cli/engine_loader.h"
#include "cli/failure.h"
#include "cli/help_verbs.h"
#include "cli/image_verbs.h"
#include "cli/language_verbs.h"
#include "cli/run_verbs.h"
#include "cli/score_verbs.h"
#include "cli/study_verbs.h"
#include "cli/table_verbs.h"
#include "cli/translation_verbs.h"
#include "cli/usage.h"
#include "cli/verbs.h"
#include "rondo/base/log.h"
#include "rondo/base/lost_mapping.h"
#include "rondo/base/version.h"

namespace rondo::cli {
namespace {

void add_models(CLI::App& app) {
  auto options = std::make_shared<ModelsOptions>();
  add_verb(app, {"models", "list every named model", "rondo models --task lm"}, options)
      ->callback([options] { run_models(*options); });
}

void add_info(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* verb = add_verb(app,
                            {"info", "count a model's parameters and multiply-adds",
                             "rondo info ringformer/mt-base --set model.width=256"},
                            options);
  verb->callback([options, &exit_code] {
    if (is_described_folder(options->model)) return run_info_run(*options);
    if (options->toml) return run_info_toml(*options);
    check_model(options->model, options->set);
    exit_code = run_engine("info", *options);
  });
}

void add_forward(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ForwardOptions>();
  CLI::App* verb = add_verb(app,
                            {"forward", "run a network on tensors from a file",
                             "rondo forward sret/t --input images.safetensors -o out.safetensors"},
                            options);
  verb->callback([options, &exit_code] {
    check_model(options->model, options->set);
    exit_code = run_engine("forward", *options);
  });
}

void add_import(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* verb =
      add_verb(app,
               {"import", "convert the weights of another program",
                "rondo import --from sret weights.safetensors --config sret/t -o t.safetensors"},
               options);
  verb->callback([options, &exit_code] {
    check_model(options->config, options->set);
    exit_code = run_engine("import", *options);
  });
}

void add_doctor(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  add_verb(app,
           {"doctor", "what this machine offers, what is slow or missing", "rondo doctor --json"},
           options)
      ->callback([options, &exit_code] { exit_code = run_engine("doctor", *options); });
}

void add_config(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  add_verb(app,
           {"config", "list every key of an experiment",
            "rondo config --kind language-model --section train"},
           options)
      ->callback([options] { run_config(*options); });
}

// What was printed may still wait in a buffer: only now is it known whether it could be written.
void finish_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error(ExitCode::io, fmt::format("standard output: cannot write: {}", std::strerror(errno)));
}

int run(int argc, char** argv) {
  CLI::App app("Transformers that reuse their weights, over depth and over time.", "rondo");
  app.set_version_flag("--version", std::string("rondo ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Every verb explains itself: rondo help VERB. Exit codes: 0 ok, 1 failure, 2 usage,\n"
      "3 bad model, data or configuration, 4 input/output, 5 diverged, 6 already running,\n"
      "7 another process of a group was lost; 130 (Ctrl-C), 143 (kill), 129 (hang-up): training\n"
      "was stopped and has saved.");
  int verbosity = 0;
  app.add_flag("-v,--verbose", verbosity, "say more on stderr");
  app.parse_complete_callback([&verbosity] { init_log(verbosity); });
  int exit_code = 0;
  add_run_verbs(app, exit_code);
  add_models(app);
  add_info(app, exit_code);
  add_forward(app, exit_code);
  add_import(app, exit_code);
  add_doctor(app, exit_code);
  add_config(app);
  add_language_verbs(app, exit_code);
  add_score_verbs(app);
  add_translation_verbs(app, exit_code);
  add_image_verbs(app, exit_code);
  add_data_verbs(app);
  add_bench_verbs(app, exit_code);
  add_table_verbs(app, exit_code);
  add_help_verbs(app);
  add_study_verbs(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw usage_error(app, error);
    app.exit(error);  // prints help or version
  }
  finish_output();
  return exit_code;
}

// Before all else. A file grown beyond its limit is a write error like others, not the end. SIGUSR1
// asks a trainer to save; until one listens (train/stop_signals.h) it waits, where it would kill.
void settle_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t save = {};
  sigemptyset(&save);
  sigaddset(&save, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &save, nullptr);
}

// One message for the exception that is being handled, and its exit code.
int report_exception() {
  const Failure failure = current_failure();
  // Not by fmt::print, which throws where nobody reads.
  std::fputs(fmt::format("rondo: {}\n", failure.text).c_str(), stderr);
  return static_cast<int>(failure.code);
}

int run_and_report(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception&) {
    return report_exception();
  }
}

// Where nothing can catch, as within a parallel region of a kernel that finds no memory: the same
// message and exit code. Several threads may get here at once; the first speaks for all.
[[noreturn]] void report_uncaught() {
  if (!std::current_exception()) std::abort();
  static std::atomic_flag reported = ATOMIC_FLAG_INIT;
  while (reported.test_and_set()) pause();
  std::_Exit(report_exception());
}

}  // namespace
}  // namespace rondo::cli

int main(int argc, char** argv) {
  rondo::cli::settle_signals();
  std::set_terminate(&rondo::cli::report_uncaught);
  rondo::report_lost_mappings();
  const int code = rondo::cli::run_and_report(argc, argv);
#if defined(RONDO_SANITIZED)
  return code;  // what was not freed is looked for when the program ends in the usual way
#else
  // All that was ours has ended; libtorch would now take a tenth of a second to unregister itself.
  std::fflush(nullptr);
  std::_Exit(code);
#endif
}
