// Optimizer steps.
#include "bench/kernels/kernel_bench.h"
#include "rondo/train/optimizer.h"

namespace rondo {
namespace {

using Parameters = std::vector<std::pair<std::string, Tensor>>;

// The weights of a small language model: d 256, f 1024, 6 levels, vocabulary 4096.
Parameters small_model() {
  Parameters all = {{"embedding", at::randn({4096, 256})}};
  for (int level = 0; level < 6; ++level) {
    const std::string at = "level." + std::to_string(level);
    for (const char* name : {".query", ".key", ".value", ".output"}) {
      all.emplace_back(at + name, at::randn({256, 256}));
    }
    all.emplace_back(at + ".up", at::randn({1024, 256}));
    all.emplace_back(at + ".down", at::randn({256, 1024}));
    all.emplace_back(at + ".norm", at::ones({256}));
  }
  for (auto& [name, value] : all) value.mutable_grad() = at::randn_like(value);
  return all;
}

const bool optimizers_registered = [] {
  for (const char* kind : {"adamw", "adafactor"}) {
    bench::compare(std::string("optimizer/") + kind + "/5.8M", [kind]() -> bench::Work {
      OptimizerConfig config;
      config.kind = kind;
      const auto parameters = std::make_shared<Parameters>(small_model());
      const std::shared_ptr<Optimizer> optimizer = make_optimizer(config, *parameters);
      const auto step = std::make_shared<int64_t>(0);
      return [=] { optimizer->step(++*step, /*rate=*/1e-4); };
    });
  }
  return true;
}();

}  // namespace
}  // namespace rondo
