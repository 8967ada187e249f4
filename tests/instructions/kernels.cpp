// Small kernels whose instructions valgrind counts, one per run: kernel_instructions NAME. Only
// counted_call() is counted; see tools/instructions.sh. The CPU is the one valgrind emulates, which
// has AVX2 at most, so the counts are the same on every machine with AVX2.
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "rondo/kernels/attention.h"
#include "rondo/kernels/blocked_gemm.h"
#include "rondo/kernels/cross_entropy.h"
#include "rondo/kernels/int8.h"

extern "C" __attribute__((noinline)) void counted_call(const std::function<void()>& work) {
  work();
  __asm__ volatile("" ::: "memory");  // not a jump into work(), which would be outside
}

namespace rondo::kernels {
namespace {

std::vector<float> waves(int64_t count, double step) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(static_cast<double>(i * 7919 % 1000) * step - 1.0));
  }
  return values;
}

// Twice: work done only once (scratch memory, choice of CPU) is not counted.
void count(const std::function<void()>& work) {
  work();
  counted_call(work);
}

void count_attention() {
  constexpr int64_t heads = 2;
  constexpr int64_t tokens = 100;
  constexpr int64_t width = 32;
  use_attention_target("AVX2");
  const std::vector<float> data = waves(heads * tokens * width, 2e-3);
  const std::vector<float> factor(heads, 0.2F);
  std::vector<uint8_t> mask(tokens * tokens);
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j <= i; ++j) mask[static_cast<size_t>(i * tokens + j)] = 1;
  }
  std::vector<float> out(data.size());
  const Strides strides = {heads * tokens * width, tokens * width, width};
  AttentionProblem problem;
  problem.batch = 1;
  problem.heads = heads;
  problem.queries = problem.keys = tokens;
  problem.width = width;
  problem.q = problem.k = problem.v = {data.data(), strides};
  problem.factor = factor.data();
  problem.mask = mask.data();
  problem.mask_row = tokens;
  count([&] { attention_forward(problem, {out.data(), strides}, nullptr, /*threads=*/1); });
}

void count_cross_entropy() {
  constexpr int64_t rows = 8;
  constexpr int64_t classes = 1000;
  const std::vector<float> logits = waves(rows * classes, 5e-3);
  const std::vector<int64_t> labels(rows, 3);
  std::vector<float> largest(rows);
  std::vector<float> log_sum(rows);
  std::vector<double> losses(rows);
  std::vector<float> gradient(logits.size());
  const LabeledRows in = {logits.data(), labels.data(), rows, classes, 0.1};
  const SoftmaxRows kept = {largest.data(), log_sum.data()};
  count([&] {
    cross_entropy(in, kept, losses.data());
    cross_entropy_gradient(in, kept, 1.0, gradient.data());
  });
}

void count_int8() {
  constexpr int64_t rows = 4;
  constexpr int64_t in = 256;
  constexpr int64_t out = 128;
  const std::vector<float> x = waves(rows * in, 2e-3);
  const std::vector<float> w = waves(out * in, 2e-3);
  const Int8Matrix matrix = quantize_rows(w.data(), out, in, Int8Products::words);
  std::vector<float> y(rows * out);
  Int8Rows quantized;
  count([&] {
    prepare_input(rows, in, quantized);
    quantize_input(x.data(), in, 0, rows, in, quantized);
    int8_product(quantized, matrix, nullptr, 0, out / kInt8Columns, y.data(), out);
  });
}

// A gradient of weights: both sides are laid out, none of the sizes is a whole block.
void count_gemm() {
  Product p;
  p.transpose_a = true;
  p.m = 50;
  p.n = 100;
  p.k = 300;
  const std::vector<float> a = waves(p.k * p.m, 2e-3);
  const std::vector<float> b = waves(p.k * p.n, 2e-3);
  std::vector<float> c(static_cast<size_t>(p.m * p.n));
  count([&] { blocked_gemm(p, {0, 0, p.m, p.n}, a.data(), b.data(), c.data()); });
}

struct Counted {
  const char* name;
  void (*run)();
};
constexpr Counted kCounted[] = {{"attention", count_attention},
                                {"cross_entropy", count_cross_entropy},
                                {"gemm", count_gemm},
                                {"int8", count_int8}};

}  // namespace
}  // namespace rondo::kernels

int main(int argc, char** argv) {
  for (const auto& kernel : rondo::kernels::kCounted) {
    if (argc < 2) std::printf("%s\n", kernel.name);
    if (argc != 2 || std::strcmp(argv[1], kernel.name) != 0) continue;
    kernel.run();
    return 0;
  }
  return argc < 2 ? 0 : 1;
}
