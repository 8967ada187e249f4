// Memory cases. A process can only query its own lifetime peak, so each number comes from a
// separate process running this program.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "bench/cases/language.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/zoo.h"
#include "rondo/nn/precision.h"
#include "rondo/recurrence/stack.h"
#include "rondo/train/language_task.h"
#include "rondo/train/trainer.h"

namespace rondo {
namespace {

constexpr int kMemorySteps = 3;

// Peak memory of this process. Not from getrusage(), which inherits the peak of the parent process.
int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}

// The output of `rondo bench --memory-of WHAT` in another process; 0 = none. The shell forks once
// more, so that the new process does not inherit our peak.
int64_t ask_own_program(const std::string& what, int64_t threads) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (program.find('\'') != std::string::npos) return 0;
  const std::string command =
      fmt::format("'{}' bench --memory-of '{}' --threads {}; exit $?", program, what, threads);
  FILE* answer = popen(command.c_str(), "r");
  if (answer == nullptr) return 0;
  long long bytes = 0;
  const bool read = std::fscanf(answer, "%lld", &bytes) == 1;
  const int status = pclose(answer);
  return read && status == 0 ? bytes : 0;
}

// A temporary folder with text to train on.
class TemporaryText {
 public:
  TemporaryText() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rondo-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Error(ExitCode::io, "cannot create " + pattern);
    folder_ = pattern;
    std::filesystem::create_directory(folder_ / "text");
    std::string text;
    for (int i = 0; i < 20000; ++i) text += fmt::format("{} words and {} more\n", i, i * i % 977);
    for (int i = 0; i < 8; ++i)
      write_file((folder_ / "text" / fmt::format("{}.txt", i)).string(), text);
  }
  ~TemporaryText() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  TemporaryText(const TemporaryText&) = delete;
  TemporaryText& operator=(const TemporaryText&) = delete;
  std::string path(const char* name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

// Training as `rondo train` runs it, of a model with few weights and large activations.
RunConfig memory_experiment(const TemporaryText& text) {
  RunConfig config;
  auto c = std::get<LanguageModelConfig>(find_model("brt/rec-fixed-skip").config().network);
  c.width = 256;
  c.hidden = 1024;
  c.heads = 4;
  c.head_width = 64;
  c.depth.levels = 6;
  c.time.window = c.time.states = 128;
  c.time.segment = 512;
  c.time.recurrent_layers = {4};
  config.model.network = c;
  config.data.train = text.path("text");
  config.data.tokenizer = "bytes";
  config.train.batch = 8;
  config.train.steps = 12;
  config.train.probe_every = 0;
  return config;
}

int64_t memory_of_dry_run() {
  const TemporaryText text;
  const RunConfig config = memory_experiment(text);
  LanguageTask task(config, text.path("cache"));
  return dry_run(task, config).peak_bytes;
}

int64_t memory_of_training() {
  const TemporaryText text;
  const RunConfig config = memory_experiment(text);
  LanguageTask task(config, text.path("cache"));
  RunFolder folder(text.path("run"), config);
  train(task, config, folder);
  return peak_resident_bytes();
}

// Training steps of 16 x 256 tokens of the reference language model.
int64_t memory_of_step(bool bf16) {
  const auto step = language_step(causal_model(), kTextRows, bf16);
  for (int i = 0; i < kMemorySteps; ++i) (*step)();
  return peak_resident_bytes();
}

// An image network with `levels` levels, of which every n-th keeps its input. A level needs about
// 16 times as much while it is differentiated, so n = √L / 4 is optimal. Memory per weight (value,
// gradient, two moments) is excluded: it grows with the weights, not the depth.
int64_t memory_of_depth(int64_t levels, int64_t images) {
  constexpr int64_t kLoops = 5;
  auto c = std::get<VisionConfig>(find_model("sret/deep-1000").config().network);
  c.image = 32;
  c.patch = 8;
  c.classes = 10;
  c.width = 48;
  c.hidden = 192;
  c.heads = 3;
  c.drop_path = 0.0;
  c.depth.recursive.blocks = {levels / kLoops};
  c.depth.recursive.loops = {kLoops};
  const auto network = drawn_network(ModelConfig{c});
  for (const auto& [name, stack] : network->stacks()) {
    stack->recompute_every(
        std::max<int64_t>(1, std::lround(std::sqrt(static_cast<double>(levels)) / 4.0)));
  }
  const NamedTensors inputs = {{"images", at::randn({images, 3, c.image, c.image})}};
  const Tensor labels = at::randint(c.classes, {images}, at::kLong);
  const auto loss = [network, inputs, labels] {
    State state;
    return sum_cross_entropy(network->forward(inputs, state, Scope()).at("logits"), labels);
  };
  TrainingStep step(network, loss, /*bf16=*/false);
  for (int i = 0; i < 2; ++i) step();
  constexpr int64_t kWeightBytes = 4 * sizeof(float);
  return peak_resident_bytes() - kWeightBytes * count_parameters(*network);
}

BenchClaim memory_claim(const std::string& what, double value, double bound) {
  return {what, {value, value, value}, bound, /*at_least=*/false, /*conclusive=*/true};
}

void compare_with_peers(const BenchOptions& options, const BenchPrecision& p, int64_t ours,
                        BenchResult& result) {
  if (!options.peers) return;
  Peer peer(options.peer, "lm.py", language_peer_words(causal_model(), "train", p.name));
  if (peer.ready()) peer.go(kMemorySteps);
  const int64_t theirs = peer.ready() ? peer.peak_bytes() : 0;
  if (theirs <= 0) {
    result.notes.push_back(peer.trouble() + ": no ratio to PyTorch " + p.name);
    return;
  }
  result.notes.push_back(fmt::format("PyTorch {}: {}", p.name, human_bytes(theirs)));
  result.claims.push_back(memory_claim(fmt::format("step {0}: memory over PyTorch {0}", p.name),
                                       static_cast<double>(ours) / static_cast<double>(theirs),
                                       1.0));
}

// Peaks at two depths, relative to a minimal process, excluding weights.
void compare_depths(int64_t threads, BenchResult& result) {
  const int64_t start = ask_own_program("depth 5 1", threads);  // levels, images
  const int64_t few = ask_own_program("depth 100 256", threads);
  const int64_t many = ask_own_program("depth 1000 256", threads);
  if (start <= 0 || few <= start || many <= start) return;
  result.notes.push_back(fmt::format(
      "256 images, excluding weights: 100 levels {1}, 1,000 levels {2}; one image, 5 levels: {0}",
      human_bytes(start), human_bytes(few), human_bytes(many)));
  result.claims.push_back(memory_claim(
      "1,000 levels: memory over 100 levels, net of startup",
      static_cast<double>(many - start) / static_cast<double>(few - start), 1.2 * std::sqrt(10.0)));
}

BenchResult measure_memory(const BenchOptions& options) {
  BenchResult result;
  result.name = "memory";
  const int64_t threads = options.peer.threads;
  for (const BenchPrecision& p : bench_precisions()) {
    const int64_t ours = ask_own_program(std::string("step ") + p.name, threads);
    if (ours <= 0) continue;
    result.notes.push_back(fmt::format("step {}: {}", p.name, human_bytes(ours)));
    compare_with_peers(options, p, ours, result);
  }
  const int64_t said = ask_own_program("dry-run", threads);
  const int64_t taken = ask_own_program("train", threads);
  if (said > 0 && taken > 0) {
    result.notes.push_back(fmt::format("train --dry-run estimates {}, training uses {}",
                                       human_bytes(said), human_bytes(taken)));
    const double off = std::abs(static_cast<double>(taken) / static_cast<double>(said) - 1.0);
    result.claims.push_back(memory_claim("training: deviation from --dry-run", off, 0.10));
  }
  compare_depths(threads, result);
  return result;
}

}  // namespace

int64_t bench_memory_of(const std::string& what) {
  if (what == "step fp32" || what == "step bf16") return memory_of_step(what == "step bf16");
  if (what == "dry-run") return memory_of_dry_run();
  if (what == "train") return memory_of_training();
  if (long long levels = 0, images = 0;
      std::sscanf(what.c_str(), "depth %lld %lld", &levels, &images) == 2) {
    return memory_of_depth(levels, images);
  }
  throw Error(ExitCode::usage, "bench: --memory-of: unknown measurement '" + printable(what) + "'");
}

void add_memory_cases(std::vector<BenchCase>& cases) {
  cases.push_back(
      {"memory", "peak memory of training steps, each in its own process", false, measure_memory});
}

}  // namespace rondo
