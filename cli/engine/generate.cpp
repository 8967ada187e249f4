// rondo generate: writing in constant memory for as long as asked.
#include "rondo/decode/generate.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>

#include "cli/engine/session.h"
#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/eval/trained.h"

namespace rondo::cli {
namespace {

int64_t peak_memory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

std::string prompt_of(const GenerateOptions& options) {
  if (!options.prompt.empty() && !options.prompt_file.empty()) {
    throw Error(ExitCode::usage, "--prompt and --prompt-file exclude each other",
                "give one of them");
  }
  return options.prompt_file.empty() ? options.prompt : read_document(options.prompt_file);
}

SamplerOptions sampler_options(const GenerateOptions& o) {
  SamplerOptions s;
  s.temperature = o.temperature;
  s.top_k = o.top_k;
  s.top_p = o.top_p;
  s.repetition_penalty = o.repetition_penalty;
  s.repetition_window = o.repetition_window;
  s.seed = o.seed;
  return s;
}

// Writes and prints; returns seconds per token of the first and the last tenth.
struct Pace {
  double first = 0;
  double last = 0;
};

Pace write_tokens(const GenerateOptions& options, Writer& writer, Sampler& sampler,
                  const std::shared_ptr<const Tokenizer>& tokenizer) {
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
  }
  pace.last =
      std::chrono::duration<double>(Clock::now() - mark).count() / static_cast<double>(tenth);
  fmt::print("{}", decoder.finish());
  return pace;
}

}  // namespace
}  // namespace rondo::cli

void rondo_engine_generate(const rondo::cli::GenerateOptions& options) {
  using namespace rondo;
  cli::start_engine(options.threads);
  const std::string prompt = cli::prompt_of(options);
  const TrainedLanguageModel trained = load_language_model(options.run, options.tokenizer);
  State state;
  if (!options.state_in.empty()) state = State::load(options.state_in, trained.fingerprint);
  Writer writer(trained.model, state);
  const std::vector<int32_t> tokens = trained.tokenizer->encode(prompt);
  writer.read(tokens);
  Sampler sampler(cli::sampler_options(options));
  const size_t recent = static_cast<size_t>(options.repetition_window);
  for (size_t i = tokens.size() > recent ? tokens.size() - recent : 0; i < tokens.size(); ++i) {
    sampler.remember(tokens[i]);
  }
  const int64_t before = cli::peak_memory();
  const cli::Pace pace = cli::write_tokens(options, writer, sampler, trained.tokenizer);
  if (!options.state_out.empty()) writer.state().save(options.state_out, trained.fingerprint);
  if (options.stats) {
    fmt::print(
        stderr,
        "\nfirst tenth {:.3f} ms/token, last tenth {:.3f} ms/token, peak memory {} then {}\n",
        pace.first * 1e3, pace.last * 1e3, human_bytes(before), human_bytes(cli::peak_memory()));
  }
}
