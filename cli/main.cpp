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
#include <new>
#include <stdexcept>
#include <system_error>

#include "cli/bench_verbs.h"
#include "cli/data_verbs.h"
#include "cli/engine_loader.h"
#include "cli/image_verbs.h"
#include "cli/language_verbs.h"
#include "cli/score_verbs.h"
#include "cli/table_verbs.h"
#include "cli/translation_verbs.h"
#include "cli/usage.h"
#include "cli/verbs.h"
#include "rondo/base/log.h"
#include "rondo/base/lost_mapping.h"
#include "rondo/base/memory_limit.h"
#include "rondo/base/version.h"

namespace rondo::cli {
namespace {

constexpr const char* kModelHelp =
    "a name that 'rondo models' lists, a TOML configuration, or a model file (.safetensors)";

void add_set(CLI::App* verb, std::vector<std::string>& set) {
  verb->add_option("--set", set, "change a key of the configuration, for example model.width=256")
      ->take_all()
      ->expected(1);
}

void add_models(CLI::App& app) {
  auto options = std::make_shared<ModelsOptions>();
  CLI::App* verb = app.add_subcommand("models", "list every named model");
  verb->add_option("--task", options->task, "only those for this task")
      ->check(CLI::IsMember({"translation", "image", "lm"}));
  verb->add_flag("--json", options->json, "print JSON");
  verb->callback([options] { run_models(*options); });
}

void add_info(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* verb = app.add_subcommand("info", "count a model's parameters and multiply-adds");
  verb->add_option("model", options->model, kModelHelp)->required();
  verb->add_flag("--json", options->json, "print JSON");
  verb->add_flag("--toml", options->toml, "print the whole configuration instead");
  const auto size = [&](const char* name, int64_t& value, int64_t most, const char* help) {
    verb->add_option(name, value, help)->check(whole_number(1, most));
  };
  size("--image", options->image, 65536, "image side in pixels");
  size("--classes", options->classes, 1 << 24, "number of classes");
  size("--vocab", options->vocabulary, 1 << 24, "size of the vocabularies");
  size("--tokens", options->tokens, 1 << 24,
       "length of the sequence that multiply-adds are counted for");
  verb->add_option("--count", options->count,
                   "what counts as an operation: macs (multiply-adds, the default); norms (SReT's "
                   "rule: 5 more per normalized element); authors (the RingFormer authors' rule: "
                   "also 6 per GELU element, 1 per element added or divided, and forming every "
                   "signal's matrix)")
      ->check(CLI::IsMember({"macs", "norms", "authors"}));
  add_set(verb, options->set);
  verb->callback([options] {
    if (options->toml) return run_info_toml(*options);
    check_model(options->model, options->set);
    run_engine("rondo_engine_info", *options);
  });
}

void add_forward(CLI::App& app) {
  auto options = std::make_shared<ForwardOptions>();
  ForwardOptions& o = *options;
  CLI::App* verb = app.add_subcommand("forward", "run a network on tensors from a file");
  verb->add_option("model", o.model, kModelHelp)->required();
  verb->add_option("--weights", o.weights, "weights (safetensors); without, drawn from --seed");
  verb->add_option("--inputs", o.inputs,
                   "safetensors with images | source, target | tokens[, reset]; labels for a loss")
      ->required();
  verb->add_option("--outputs", o.outputs, "safetensors to write: logits, state.*, probe.*, loss")
      ->required();
  verb->add_option("--state-in", o.state_in, "continue from this state");
  verb->add_option("--state-out", o.state_out, "write the state afterwards");
  verb->add_option("--probe", o.probes,
                   "also write activations whose name matches, * and ? allowed")
      ->take_all()
      ->expected(1);
  verb->add_flag("--train", o.train,
                 "training mode: dropout, batch statistics, random permutations");
  verb->add_flag("--gradients", o.gradients,
                 "with labels: write gradient.<parameter> (--train implies it)");
  verb->add_option("--seed", o.seed, "of drawn weights, dropout and permutations");
  add_loading(verb, o.load);
  add_computing(verb, o.compute);
  add_set(verb, o.set);
  verb->callback([options] {
    check_model(options->model, options->set);
    run_engine("rondo_engine_forward", *options);
  });
}

void add_import(CLI::App& app) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* verb = app.add_subcommand("import", "convert the weights of another program");
  verb->add_option("--from", options->program, "ringformer, sret, meliad, deit or timm-vit")
      ->required();
  verb->add_option("file", options->file, "the other program's weights (safetensors)")->required();
  verb->add_option("--config", options->config, "the model: a name or a TOML configuration")
      ->required();
  verb->add_option("-o,--output", options->output, "model file to write")->required();
  verb->add_option(
      "--classes", options->classes,
      "images: names of the classes to keep with it, one a line (name, or id TAB name)");
  add_set(verb, options->set);
  verb->callback([options] {
    check_model(options->config, options->set);
    run_engine("rondo_engine_import", *options);
  });
}

void add_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* verb =
      app.add_subcommand("doctor", "what this machine offers, what is slow or missing");
  verb->add_flag("--json", options->json, "print JSON");
  verb->callback([options] { run_engine("rondo_engine_doctor", *options); });
}

void add_config(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  CLI::App* verb = app.add_subcommand("config", "list every key of an experiment");
  verb->add_option("--kind", options->kind, "encoder-decoder, vision, pyramid or language-model")
      ->required();
  verb->add_option("--section", options->section,
                   "model, data, train, optimizer or schedule; images: augment, distill");
  verb->add_flag("--json", options->json, "print JSON");
  verb->callback([options] { run_config(*options); });
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
      "Every verb explains itself: rondo VERB --help. Exit codes: 0 ok, 1 failure, 2 usage,\n"
      "3 bad model, data or configuration, 4 input/output, 5 diverged, 6 already running,\n"
      "128 + a signal's number when it stopped a training run, which has saved.");
  int verbosity = 0;
  app.add_flag("-v,--verbose", verbosity, "say more on stderr");
  app.parse_complete_callback([&verbosity] { init_log(verbosity); });
  add_models(app);
  add_info(app);
  add_forward(app);
  add_import(app);
  add_doctor(app);
  add_config(app);
  int exit_code = 0;
  add_language_verbs(app, exit_code);
  add_score_verbs(app);
  add_translation_verbs(app);
  add_image_verbs(app);
  add_data_verbs(app);
  add_bench_verbs(app);
  add_table_verbs(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw usage_error(app, error);
    app.exit(error);  // prints help or version
  }
  finish_output();
  return exit_code;
}

// One message for what escaped from below us. Memory is the user's to mend; anything else is a
// defect of ours, of which the first line says what and the rest is a trace.
int report_unexpected(const std::exception& error) {
  const std::string text = error.what();
  const size_t asked = text.find("you tried to allocate");  // libtorch's own allocator
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr || asked != std::string::npos ||
      text.find("Storage size calculation overflowed") != std::string::npos) {
    const std::string bytes =
        asked == std::string::npos ? "" : ": " + text.substr(asked, text.find('.', asked) - asked);
    fmt::print(stderr, "rondo: out of memory{}{}\n  choose a smaller model, batch or sequence\n",
               bytes, named_limits());
  } else {
    fmt::print(stderr, "rondo: internal error: {}\n  please report it with the command you ran\n",
               text.substr(0, text.find('\n')));
  }
  return static_cast<int>(ExitCode::failure);
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
  try {
    throw;
  } catch (const Error& error) {
    fmt::print(stderr, "rondo: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::system_error& error) {  // fmt could not write to standard output
    fmt::print(stderr, "rondo: {}\n", error.what());
    return static_cast<int>(ExitCode::io);
  } catch (const std::exception& error) {
    return report_unexpected(error);
  }
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
