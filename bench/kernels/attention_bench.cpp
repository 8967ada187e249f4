// Attention by our kernels and by plain operations.
#include <cmath>

#include "bench/kernels/kernel_bench.h"
#include "rondo/nn/attention.h"

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

// With a mask as models use it, and a learned bias and scale for windows.
nn::AttendOptions options_of(const AttentionBench& bench) {
  nn::AttendOptions how;
  how.factor = 1.0 / std::sqrt(static_cast<double>(bench.width));
  const int64_t reach = bench.keys - bench.queries;
  if (bench.mask == AttentionMask::none) return how;
  how.mask = at::ones({bench.queries, bench.keys}, at::kBool).tril(reach);
  if (bench.mask == AttentionMask::causal) return how;
  how.mask = how.mask.triu(0);
  how.scale = at::ones({bench.heads}).requires_grad_();
  how.bias = at::zeros({bench.heads, bench.queries, bench.keys}).requires_grad_();
  return how;
}

bench::Differentiable attention(const AttentionBench& shape, bool bf16) {
  const auto heads = [&](int64_t tokens) {  // [B, H, T, d], as projections leave it
    const Tensor x = at::randn({shape.batch, tokens, shape.heads, shape.width});
    return x.to(bench::activations(bf16)).transpose(1, 2).requires_grad_();
  };
  const Tensor q = heads(shape.queries);
  const Tensor k = heads(shape.keys);
  const Tensor v = heads(shape.keys);
  const nn::AttendOptions how = options_of(shape);
  std::vector<Tensor> leaves = {q, k, v};
  if (how.bias.defined()) leaves.insert(leaves.end(), {how.scale, how.bias});
  return {leaves,
          [=] { return nn::merge_heads(nn::attend(q, k, v, how, /*training=*/true, Scope())); }};
}

const bool attention_registered = [] {
  for (const AttentionBench& shape : kAttentionBenches) {
    bench::compare_passes(std::string("attention/") + shape.name,
                          [shape](bool bf16) { return attention(shape, bf16); });
  }
  return true;
}();

}  // namespace
}  // namespace rondo
