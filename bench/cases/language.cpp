// Language model cases: training step, forward pass, token-by-token generation.
#include "bench/cases/language.h"

#include "rondo/infer/generator.h"
#include "rondo/nn/precision.h"

namespace rondo {
LanguageModelConfig causal_model() {
  LanguageModelConfig c;
  c.vocabulary = 4096;
  c.width = 256;
  c.hidden = 1024;
  c.heads = 4;
  c.head_width = 64;
  c.dropout = 0.0;
  c.depth.levels = 6;
  c.time.kind = "none";
  c.time.segment = kTextTokens;
  return c;
}

std::vector<std::string> language_peer_words(const LanguageModelConfig& c, const char* what,
                                             const char* precision) {
  return {"--what",       what,
          "--precision",  precision,
          "--vocabulary", std::to_string(c.vocabulary),
          "--width",      std::to_string(c.width),
          "--hidden",     std::to_string(c.hidden),
          "--heads",      std::to_string(c.heads),
          "--levels",     std::to_string(c.depth.levels),
          "--rows",       std::to_string(kTextRows),
          "--tokens",     std::to_string(kTextTokens)};
}

namespace {

// The same with a window, so that it can generate indefinitely.
LanguageModelConfig windowed_model() {
  LanguageModelConfig c = causal_model();
  c.time.kind = "window";
  c.time.window = kTextTokens;
  c.time.attend_self = true;
  return c;
}

void add_peers(Race& race, const LanguageModelConfig& c, const char* what, double units,
               int64_t parameters) {
  race.peer("PyTorch fp32", units, "tokens", "lm.py", language_peer_words(c, what, "fp32"),
            parameters);
  if (!nn::cpu_has_bf16()) return;  // a minute per step, with nothing of ours to compare
  race.peer("PyTorch bf16", units, "tokens", "lm.py", language_peer_words(c, what, "bf16"),
            parameters);
}

const char* matmul_name(bool bf16) { return bf16 ? "bf16 matmul" : "fp32 matmul"; }

BenchResult train_language(const BenchOptions& options) {
  const LanguageModelConfig c = causal_model();
  constexpr double kUnits = kTextRows * kTextTokens;
  const double work = 3.0 * forward_flops(ModelConfig{c}, kTextRows, kTextTokens);
  Race race("train-lm", options);
  int64_t parameters = 0;
  for (const BenchPrecision& p : bench_precisions()) {
    if (p.bf16) race.limit(matmul_limit(true));
    const auto step = language_step(c, kTextRows, p.bf16);
    parameters = count_parameters(step->network());
    race.ours(p.name, kUnits, "tokens", [step] { (*step)(); });
    race.share(p.name, work, matmul_name(p.bf16), p.bf16 ? 0.70 : 0.75);
  }
  add_peers(race, c, "train", kUnits, parameters);
  race.faster("fp32", "PyTorch fp32", 1.15);
  race.faster("bf16", "PyTorch fp32", 2.5);
  race.faster("bf16", "PyTorch bf16", 1.25);
  return race.run();
}

BenchResult forward_language(const BenchOptions& options) {
  const LanguageModelConfig c = causal_model();
  constexpr double kUnits = kTextRows * kTextTokens;
  const double work = forward_flops(ModelConfig{c}, kTextRows, kTextTokens);
  Race race("forward-lm", options);
  const auto model = std::dynamic_pointer_cast<LanguageModel>(drawn_network(ModelConfig{c}));
  model->eval();
  const Tensor tokens = random_tokens(kTextRows, kTextTokens, c.vocabulary);
  for (const BenchPrecision& p : bench_precisions()) {
    if (p.bf16) race.limit(matmul_limit(true));
    const bool bf16 = p.bf16;
    race.ours(p.name, kUnits, "tokens", [model, tokens, bf16] {
      const c10::InferenceMode no_gradients;
      const nn::MixedPrecision mixed(bf16);
      State state;
      model->forward_tokens(tokens, state, Scope());
    });
    race.share(p.name, work, matmul_name(bf16), 0);
  }
  add_peers(race, c, "forward", kUnits, count_parameters(*model));
  race.peer("ONNX Runtime fp32", kUnits, "tokens", "onnx.js",
            language_peer_words(c, "forward", "fp32"));
  race.faster("fp32", "ONNX Runtime fp32", 1.3);
  race.faster("bf16", "ONNX Runtime fp32", 2.5);
  race.faster("fp32", "PyTorch fp32", 0);
  race.faster("bf16", "PyTorch fp32", 0);
  race.faster("bf16", "PyTorch bf16", 0);
  return race.run();
}

// Bytes read per token: every weight once, and the keys and values of the window, which are bf16
// unless weights are fp32.
int64_t bytes_per_token(const CompiledLanguageModel& weights) {
  const LanguageModelConfig& c = weights.config();
  const int64_t cached = 2 * c.time.window * c.heads * c.head_width * c.depth.levels;
  const bool exact = weights.format() == kernels::PackedFormat::fp32;
  return static_cast<int64_t>(weights.bytes()) + cached * (exact ? 4 : 2);
}

BenchResult decode_language(const BenchOptions& options) {
  const LanguageModelConfig c = windowed_model();
  Race race("decode-lm", options);
  const auto model = std::dynamic_pointer_cast<LanguageModel>(drawn_network(ModelConfig{c}));
  SamplerOptions likeliest;
  likeliest.temperature = 0;
  struct Kept {
    const char* name;
    kernels::PackedFormat format;
    double bound;  // target fraction of the bandwidth; 0 = none
  };
  for (const Kept& kept : {Kept{"fp32", kernels::PackedFormat::fp32, 0.70},
                           Kept{"bf16", kernels::PackedFormat::bf16, 0.70},
                           Kept{"int8", kernels::PackedFormat::int8, 0}}) {
    const auto weights = std::make_shared<CompiledLanguageModel>(model, kept.format);
    const int64_t bytes = bytes_per_token(*weights);
    const Limit read = read_limit(bytes);
    race.limit(read);
    const auto writer = std::make_shared<Generator>(weights);
    const auto sampler = std::make_shared<Sampler>(likeliest);
    race.ours(kept.name, 1, "tokens", [writer, sampler] { writer->write(*sampler, 0); });
    race.share(kept.name, static_cast<double>(bytes), read.name, kept.bound);
  }
  const int64_t parameters = count_parameters(*model);
  race.peer("PyTorch fp32", 1, "tokens", "lm.py", language_peer_words(c, "decode", "fp32"),
            parameters);
  race.faster("fp32", "PyTorch fp32", 0);
  race.faster("bf16", "PyTorch fp32", 15);
  race.faster("int8", "PyTorch fp32", 0);
  return race.run();
}

// Documents at different positions of their windows, all in one session.
std::shared_ptr<Session> session_of(const std::shared_ptr<const CompiledLanguageModel>& model,
                                    int64_t rows, std::vector<Session::Token>& next) {
  const auto session = std::make_shared<Session>(model);
  for (int64_t r = 0; r < rows; ++r) {
    next.push_back({session->add(), r});
    session->read(next.back().row, std::vector<int32_t>(static_cast<size_t>(1 + 13 * r), 5));
  }
  return session;
}

BenchResult decode_rows(const BenchOptions& options) {
  const LanguageModelConfig c = mini_model("brt/rec-fixed-skip", 4);
  Race race("decode-rows", options);
  const auto model = std::make_shared<const CompiledLanguageModel>(
      std::dynamic_pointer_cast<LanguageModel>(drawn_network(ModelConfig{c})),
      kernels::PackedFormat::fp32);
  race.limit(read_limit(bytes_per_token(*model)));
  // Averaged over a block, in which the recurrent cell runs once.
  const double flops =
      forward_flops(ModelConfig{c}, 1, c.time.window) / static_cast<double>(c.time.window);
  const auto name = [](int64_t rows) {
    return std::to_string(rows) + (rows == 1 ? " row" : " rows");
  };
  for (const int64_t rows : {1, 8, 16}) {
    std::vector<Session::Token> next;
    const auto session = session_of(model, rows, next);
    race.ours(name(rows), static_cast<double>(rows), "tokens",
              [session, next] { session->step(next); });
    race.share(name(rows), static_cast<double>(rows) * flops, "fp32 matmul", 0);
  }
  race.faster(name(8), name(1), 3.0);
  race.faster(name(16), name(1), 0);
  return race.run();
}

}  // namespace

void add_language_cases(std::vector<BenchCase>& cases) {
  cases.push_back(
      {"train-lm", "training step of a language model, 16 x 256 tokens", true, train_language});
  cases.push_back({"forward-lm", "forward pass of the same model", true, forward_language});
  cases.push_back(
      {"decode-lm", "token-by-token generation with the same model", true, decode_language});
  cases.push_back(
      {"decode-rows", "generating several texts at once with a mini model", true, decode_rows});
}

}  // namespace rondo
