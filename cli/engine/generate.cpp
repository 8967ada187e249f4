// rondo generate: generates text of any length in constant memory.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/infer/generator.h"
#include "rondo/infer/load.h"

namespace rondo::cli {
namespace {

int64_t resident_memory() {
  std::ifstream in("/proc/self/statm");
  int64_t all = 0;
  int64_t resident = 0;
  in >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::string prompt_of(const GenerateOptions& options) {
  if (!options.prompt.empty() && !options.prompt_file.empty()) {
    throw Error(ExitCode::usage, "--prompt and --prompt-file are mutually exclusive",
                "give one of them");
  }
  return options.prompt_file.empty() ? options.prompt : read_document(options.prompt_file);
}

SamplerOptions sampler_options(const GenerateOptions& o, const TrainedLanguageModel& model) {
  SamplerOptions s;
  s.temperature = o.temperature;
  s.top_k = o.top_k;
  s.top_p = o.top_p;
  s.repetition_penalty = o.repetition_penalty;
  s.repetition_window = o.repetition_window;
  s.seed = o.seed;
  s.excluded = tokens_without_text(*model.tokenizer, model.model->config().vocabulary);
  return s;
}

kernels::PackedFormat packed_format(const std::string& name) {
  if (name == "fp32") return kernels::PackedFormat::fp32;
  return name == "bf16" ? kernels::PackedFormat::bf16 : kernels::PackedFormat::int8;
}

// Seconds per token over the first and the last tenth, and resident memory after two windows, when
// all buffers are full, and at the end.
struct Pace {
  double first = 0;
  double last = 0;
  int64_t memory_first = 0;
  int64_t memory_last = 0;
};

Pace write_tokens(const GenerateOptions& options, int64_t window, Generator& writer,
                  Sampler& sampler, const std::shared_ptr<const Tokenizer>& tokenizer) {
  using Clock = std::chrono::steady_clock;
  const int64_t newline = tokenizer->encode("\n").front();
  const int64_t tenth = std::max<int64_t>(1, options.tokens / 10);
  StreamDecoder decoder(tokenizer);
  Pace pace;
  auto mark = Clock::now();
  for (int64_t i = 0; i < options.tokens; ++i) {
    const std::string text = decoder.push(static_cast<int32_t>(writer.write(sampler, newline)));
    fmt::print("{}", text);
    if (options.stream) std::fflush(stdout);
    if (i + 1 == tenth) {
      pace.first =
          std::chrono::duration<double>(Clock::now() - mark).count() / static_cast<double>(tenth);
    }
    if (i + 1 == options.tokens - tenth) mark = Clock::now();
    if (i + 1 == std::min(2 * window, options.tokens)) pace.memory_first = resident_memory();
  }
  pace.last =
      std::chrono::duration<double>(Clock::now() - mark).count() / static_cast<double>(tenth);
  fmt::print("{}", decoder.finish());
  pace.memory_last = resident_memory();
  return pace;
}

void print_pace(const Pace& pace) {
  const double growth = static_cast<double>(pace.memory_last) /
                            static_cast<double>(std::max<int64_t>(1, pace.memory_first)) -
                        1.0;
  fmt::print(stderr,
             "first tenth {:.4f} ms/token, last tenth {:.4f} ms/token ({:+.1f} %); memory {} after "
             "two windows, {} at the end ({:+.2f} %)\n",
             pace.first * 1e3, pace.last * 1e3, 100.0 * (pace.last / pace.first - 1.0),
             human_bytes(pace.memory_first), human_bytes(pace.memory_last), 100.0 * growth);
}

}  // namespace

void run_generate(const GenerateOptions& options) {
  start_engine(options.compute);
  const std::string prompt = prompt_of(options);
  const Verify verify = verify_as(options.load);
  const TrainedLanguageModel trained = load_language_model(options.run, options.tokenizer, verify);
  const std::vector<int32_t> tokens = trained.tokenizer->encode(prompt);
  const auto started = std::chrono::steady_clock::now();
  State state;
  if (!options.state_in.empty()) {
    state = trained.model->load_state(options.state_in, trained.fingerprint(), 1, verify);
  }
  Generator writer(
      std::make_shared<CompiledLanguageModel>(trained.model, packed_format(options.precision)),
      state);
  read_with_progress(writer, tokens);
  const std::chrono::duration<double> ready = std::chrono::steady_clock::now() - started;
  Sampler sampler(sampler_options(options, trained));
  for (const int64_t token : writer.recent()) sampler.remember(token);
  const int64_t window = trained.model->config().time.window;
  // On a terminal, print prompt and continuation as one text; to a pipe, only the continuation.
  const bool person = isatty(STDOUT_FILENO) == 1;
  if (person) fmt::print("{}", prompt);
  const Pace pace = write_tokens(options, window, writer, sampler, trained.tokenizer);
  if (person) fmt::print("\n");
  if (!options.state_out.empty()) writer.state().save(options.state_out, trained.fingerprint());
  if (options.stats) {
    fmt::print(stderr, "\nready in {:.3f} ms: {}{} of prompt processed\n", ready.count() * 1e3,
               options.state_in.empty() ? "" : "state restored, ",
               counted(static_cast<int64_t>(tokens.size()), "token"));
    print_pace(pace);
  }
}

}  // namespace rondo::cli
