// Speed of fp32 matmuls: as gemm() chooses (kernels/gemm.cpp, is_blocked()), and with our own
// blocked loops. Where the latter are faster on some CPU, the choice is wrong there.
#include "bench/kernels/kernel_bench.h"
#include "rondo/kernels/gemm.h"

namespace rondo {
namespace {

// `rows` activations through a map from `in` to `out` values, forward and backward.
struct MapShape {
  int64_t rows, in, out;
  std::string name() const {
    return std::to_string(rows) + "x" + std::to_string(in) + "x" + std::to_string(out);
  }
};

kernels::Product product_of(const MapShape& s, const std::string& which) {
  kernels::Product p;
  p.m = which == "dw" ? s.out : s.rows;
  p.n = which == "y" ? s.out : s.in;
  p.k = which == "y" ? s.in : which == "dx" ? s.out : s.rows;
  p.transpose_a = which == "dw";
  p.transpose_b = which == "y";
  return p;
}

void register_product(const kernels::Product& p, const std::string& name, bool blocks) {
  const std::string way = blocks                   ? "/blocks"
                          : kernels::is_blocked(p) ? "/chosen_blocks"
                                                   : "/chosen_onednn";
  const auto run = [p, blocks](benchmark::State& state) {
    at::set_num_threads(static_cast<int>(std::thread::hardware_concurrency()));
    const Tensor a = at::randn({p.m * p.k});
    const Tensor b = at::randn({p.k * p.n});
    const Tensor c = at::empty({p.m * p.n});
    const auto multiply = blocks ? kernels::gemm_by_blocks
                                 : static_cast<decltype(&kernels::gemm_by_blocks)>(&kernels::gemm);
    const auto work = [&] {
      multiply(p, a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>());
    };
    work();  // fault in memory that was never written
    for (auto _ : state) work();
    state.counters["flop/s"] = benchmark::Counter(2.0 * static_cast<double>(p.m * p.n * p.k),
                                                  benchmark::Counter::kIsIterationInvariantRate);
  };
  benchmark::RegisterBenchmark(("products/" + name + way).c_str(), run)
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

const bool products_of_matrices_registered = [] {
  // The language model of `rondo bench`, its head, RingFormer's maps, SReT-T's first and last
  // stage.
  for (const MapShape& shape :
       {MapShape{4096, 256, 256}, MapShape{4096, 256, 1024}, MapShape{4096, 1024, 256},
        MapShape{4096, 256, 4096}, MapShape{1024, 512, 512}, MapShape{1024, 512, 2048},
        MapShape{1024, 2048, 512}, MapShape{12544, 64, 192}, MapShape{784, 256, 768}}) {
    for (const char* which : {"y", "dx", "dw"}) {
      const kernels::Product p = product_of(shape, which);
      for (const bool blocks : {false, true}) {
        register_product(p, std::string(which) + "/" + shape.name(), blocks);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace rondo
