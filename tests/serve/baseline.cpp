// A Session without HTTP: rows that generate for some seconds. Prints tokens per second, with which
// tests/serve/speed.py compares a server.
//
//   serve_baseline RUN ROWS SECONDS
#include <fmt/format.h>

#include <chrono>

#include "rondo/infer/load.h"
#include "rondo/infer/sampler.h"
#include "rondo/infer/session.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  using Clock = std::chrono::steady_clock;
  rondo::Runtime::start({});
  const rondo::TrainedLanguageModel trained = rondo::load_language_model(argv[1], "");
  const auto model = std::make_shared<const rondo::CompiledLanguageModel>(
      trained.model, rondo::kernels::PackedFormat::fp32);
  rondo::Session session(model);
  const std::vector<int32_t> prompt = trained.tokenizer->encode("The old house");
  std::vector<rondo::Session::RowId> rows;
  std::vector<rondo::Sampler> samplers;
  for (int64_t r = 0; r < std::atoll(argv[2]); ++r) {
    rows.push_back(session.add());
    session.read(rows.back(), prompt);
    rondo::SamplerOptions options;
    options.seed = static_cast<uint64_t>(r);
    options.temperature = 0.8;
    samplers.emplace_back(options);
  }
  const auto until = Clock::now() + std::chrono::duration<double>(std::atof(argv[3]));
  const auto began = Clock::now();
  int64_t tokens = 0;
  for (uint64_t number = prompt.size(); Clock::now() < until; ++number) {
    std::vector<rondo::Session::Token> step;
    for (size_t r = 0; r < rows.size(); ++r) {
      step.push_back({rows[r], samplers[r].sample(session.logits(rows[r]), number)});
    }
    session.step(step);
    tokens += static_cast<int64_t>(rows.size());
  }
  const std::chrono::duration<double> took = Clock::now() - began;
  fmt::print("{:.0f} tokens/s\n", static_cast<double>(tokens) / took.count());
}
