// Shared by the kernel benchmarks: the same work by our fused kernels and by the plain operations
// they replace.
//
//   ninja -C build/release rondo_bench
//   build/release/rondo_bench --benchmark_filter=^norm --benchmark_enable_random_interleaving=true
//
// Names: group/shape/.../kernels. On a busy machine, compare the medians of
// --benchmark_repetitions.
#pragma once

#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/layers.h"
#include "rondo/nn/precision.h"

namespace rondo::bench {

using Work = std::function<void()>;
// Creates the data and returns the work to be timed.
using Setup = std::function<Work()>;

inline void compare(const std::string& name, const Setup& setup) {
  for (const nn::Kernels kernels : {nn::Kernels::reference, nn::Kernels::fused}) {
    const char* which = kernels == nn::Kernels::fused ? "/fused" : "/reference";
    const auto run = [kernels, setup](benchmark::State& state) {
      at::set_num_threads(static_cast<int>(std::thread::hardware_concurrency()));
      nn::use_kernels(kernels);
      const Work work = setup();
      for (auto _ : state) work();
      nn::use_kernels(nn::Kernels::fused);
    };
    benchmark::RegisterBenchmark((name + which).c_str(), run)
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  }
}

// `rows` times weight [out, in] as packed for inference.
inline Work packed_product(const Tensor& weight, int64_t rows, nn::WeightFormat format) {
  struct Product {
    explicit Product(nn::WeightFormat f)
        : packer(f == nn::WeightFormat::bf16 ? kernels::PackedFormat::bf16
                                             : kernels::PackedFormat::fp32,
                 f == nn::WeightFormat::int8) {}
    nn::WeightPacker packer;
    nn::CompiledLinear map;
    nn::RowBuffer in, out;
  };
  const auto p = std::make_shared<Product>(format);
  p->map = p->packer.linear(weight, Tensor());
  p->in.resize(rows, weight.size(1));
  p->out.resize(rows, weight.size(0));
  std::fill_n(p->in.rows(rows).data, rows * p->in.rows(rows).stride, 0.5F);
  return [p, rows] { p->map.forward(p->in.rows(rows), p->out.rows(rows), kernels::Member()); };
}

// `forward` alone, and with the gradients of `leaves`, in fp32 and in mixed precision.
struct Differentiable {
  std::vector<Tensor> leaves;
  std::function<Tensor()> forward;
};

inline void compare_passes(const std::string& name,
                           const std::function<Differentiable(bool bf16)>& make) {
  for (const bool bf16 : {false, true}) {
    for (const bool backward : {false, true}) {
      const std::string full =
          name + (bf16 ? "/bf16" : "/fp32") + (backward ? "/both" : "/forward");
      compare(full, [=]() -> Work {
        const Differentiable it = make(bf16);
        return [=] {
          const nn::MixedPrecision mixed(bf16);
          const at::AutoGradMode graph(backward);
          const Tensor y = it.forward();
          if (backward) torch::autograd::grad({y}, it.leaves, {at::ones_like(y)});
        };
      });
    }
  }
}

// Normal noise that requires a gradient; in mixed precision activations are bf16.
inline Tensor leaf(const Shape& shape, at::ScalarType type = at::kFloat) {
  return at::randn(shape).to(type).requires_grad_();
}
inline at::ScalarType activations(bool bf16) { return bf16 ? at::kBFloat16 : at::kFloat; }

}  // namespace rondo::bench
