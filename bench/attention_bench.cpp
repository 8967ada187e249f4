// How long attention takes, by our kernels and by plain operations:
//
//   build/release/rondo_bench --benchmark_filter=attention
//   --benchmark_enable_random_interleaving=true
//
// Names: attention/shape/type/pass/kernels. On a busy machine compare the medians of
// --benchmark_repetitions.
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <thread>

#include "rondo/nn/attention.h"
#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/precision.h"

namespace rondo {
namespace {

enum class AttentionMask { none, causal, window };

struct AttentionBench {
  const char* name;
  int64_t batch, heads, queries, keys, width;
  AttentionMask mask;
};

constexpr AttentionBench kAttentionBenches[] = {
    {"language-256", 16, 4, 256, 256, 64, AttentionMask::causal},
    {"window-128", 16, 4, 128, 256, 64, AttentionMask::window},
    {"translation-20", 64, 4, 20, 20, 64, AttentionMask::none},
    {"vision-197", 64, 3, 197, 197, 64, AttentionMask::none},
    {"groups-49", 512, 2, 49, 49, 32, AttentionMask::none},
    {"decode-1", 1, 4, 1, 256, 64, AttentionMask::none},
    {"decode-batch", 32, 4, 5, 20, 64, AttentionMask::none},
};

// With a mask as models make it, and a learned bias and scale where windows have them.
nn::AttendOptions options_of(const AttentionBench& bench) {
  nn::AttendOptions how;
  how.factor = 1.0 / std::sqrt(static_cast<double>(bench.width));
  const int64_t reach = bench.keys - bench.queries;
  if (bench.mask == AttentionMask::none) return how;
  how.visible = at::ones({bench.queries, bench.keys}, at::kBool).tril(reach);
  if (bench.mask == AttentionMask::causal) return how;
  how.visible = how.visible.triu(0);
  how.scale = at::ones({bench.heads}).requires_grad_();
  how.bias = at::zeros({bench.heads, bench.queries, bench.keys}).requires_grad_();
  return how;
}

void attention(benchmark::State& state, const AttentionBench& bench, bool bf16, bool backward,
               nn::Kernels kernels) {
  at::set_num_threads(static_cast<int>(std::thread::hardware_concurrency()));
  nn::use_kernels(kernels);
  const nn::MixedPrecision mixed(bf16);
  const auto heads = [&](int64_t tokens) {  // [B, H, T, d], as projections leave it
    const Tensor x = at::randn({bench.batch, tokens, bench.heads, bench.width});
    return x.to(bf16 ? at::kBFloat16 : at::kFloat).transpose(1, 2).requires_grad_(backward);
  };
  const Tensor q = heads(bench.queries);
  const Tensor k = heads(bench.keys);
  const Tensor v = heads(bench.keys);
  const nn::AttendOptions how = options_of(bench);
  const Tensor direction = at::randn_like(q.detach());
  const at::AutoGradMode graph(backward);
  for (auto _ : state) {
    const Tensor y = nn::merge_heads(nn::attend(q, k, v, how, /*training=*/true, Scope()));
    if (!backward) continue;
    std::vector<Tensor> leaves = {q, k, v};
    if (how.bias.defined()) leaves.insert(leaves.end(), {how.scale, how.bias});
    torch::autograd::grad({y}, leaves, {nn::merge_heads(direction)});
  }
  nn::use_kernels(nn::Kernels::fused);
}

const bool attention_registered = [] {
  for (const AttentionBench& bench : kAttentionBenches) {
    for (const bool bf16 : {false, true}) {
      for (const bool backward : {false, true}) {
        for (const nn::Kernels kernels : {nn::Kernels::reference, nn::Kernels::fused}) {
          const std::string name = std::string("attention/") + bench.name +
                                   (bf16 ? "/bf16" : "/fp32") + (backward ? "/both" : "/forward") +
                                   (kernels == nn::Kernels::fused ? "/fused" : "/reference");
          benchmark::RegisterBenchmark(name.c_str(), attention, bench, bf16, backward, kernels)
              ->Unit(benchmark::kMicrosecond)
              ->UseRealTime();
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace rondo
