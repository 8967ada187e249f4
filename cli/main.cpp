// The command `rondo`: parses the command line, runs one verb, and reports errors as one message
// and an exit code.
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
  add_verb(app, {"models", "list all named models", "rondo models --task lm"}, options)
      ->callback([options] { run_models(*options); });
}

void add_info(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* verb =
      add_verb(app,
               {"info", "count a model's parameters and multiply-adds, or describe a run",
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
               {"import", "convert weights from another program",
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
           {"doctor", "check this machine: what it offers, what is slow or missing",
            "rondo doctor --json"},
           options)
      ->callback([options, &exit_code] { exit_code = run_engine("doctor", *options); });
}

void add_config(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  add_verb(app,
           {"config", "list all configuration keys of an experiment",
            "rondo config --kind language-model --section train"},
           options)
      ->callback([options] { run_config(*options); });
}

// Output may still be buffered: write errors only show up now.
void finish_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error(ExitCode::io, fmt::format("standard output: cannot write: {}", std::strerror(errno)));
}

int run(int argc, char** argv) {
  CLI::App app("Transformers that reuse their weights, over depth and over time.", "rondo");
  app.set_version_flag("--version", std::string("rondo ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "For help on a verb: rondo help VERB. Exit codes: 0 ok, 1 failure, 2 usage,\n"
      "3 bad model, data or configuration, 4 input/output, 5 diverged, 6 already running,\n"
      "7 lost another process of the group; 130 (Ctrl-C), 143 (kill), 129 (hang-up): training\n"
      "was stopped and saved a checkpoint.");
  int verbosity = 0;
  app.add_flag("-v,--verbose", verbosity, "log more to stderr");
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

// Called first. Exceeding the file size limit is then an ordinary write error and does not kill the
// process. SIGUSR1 asks a trainer to save; until one handles it (train/stop_signals.h) it stays
// pending instead of killing the process.
void settle_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t save = {};
  sigemptyset(&save);
  sigaddset(&save, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &save, nullptr);
}

// Prints one message for the exception being handled and returns its exit code.
int report_exception() {
  const Failure failure = current_failure();
  // Not with fmt::print, which throws if stderr is closed.
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

// For exceptions that nothing can catch, such as running out of memory in a kernel's parallel
// region: the same message and exit code. If several threads get here, only the first reports.
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
  return code;  // leak detection runs at normal exit
#else
  // Everything of ours has ended; libtorch would now take a tenth of a second to unregister itself.
  std::fflush(nullptr);
  std::_Exit(code);
#endif
}
