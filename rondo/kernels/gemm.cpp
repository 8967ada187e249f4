// Which matmuls go to oneDNN, and how they are split across threads.
#include "rondo/kernels/gemm.h"

#include <dnnl.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "rondo/kernels/blocked_gemm.h"
#include "rondo/kernels/clones.h"
#include "rondo/kernels/cpu.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/thresholds.h"

// Exported by the library and called by its own tests, but missing from its headers.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n,
                                               dnnl_dim_t k, float alpha, const uint16_t* a,
                                               dnnl_dim_t lda, const uint16_t* b, dnnl_dim_t ldb,
                                               float beta, float* c, dnnl_dim_t ldc);

namespace rondo::kernels {
namespace {

// Rows, or alternatively columns, of c per thread; both 0: not split.
struct Cut {
  int64_t rows = 0;
  int64_t columns = 0;
};

// Each thread's share of `all`, in whole units.
int64_t share(int64_t all, int64_t unit) {
  const int64_t threads = threads_here();
  return (all + threads * unit - 1) / (threads * unit) * unit;
}

// Computes each part of c on one thread.
template <class Multiply>
void multiply_parts(const Product& p, Cut cut, const Multiply& multiply) {
  const int64_t step = cut.rows + cut.columns;  // one of them is 0
  const int64_t length = cut.rows != 0 ? p.m : p.n;
  parallel_for((length + step - 1) / step, true, [&](int64_t i) {
    const int64_t at = i * step;
    const int64_t size = std::min(step, length - at);
    multiply(cut.rows != 0 ? Part{at, 0, size, p.n} : Part{0, at, p.m, size});
  });
}

// ---- our own loops ----------------------------------------------------------------------------

Cut cut_of_blocks(const Product& p) {
  constexpr int64_t kRowUnit = 6;  // of blocked_gemm's innermost loop
  constexpr int64_t kColumnUnit = 64;
  if (threads_here() == 1 || p.m * p.n * p.k < kWorthGemmThreads) return {p.m, 0};
  return p.m >= p.n ? Cut{share(p.m, kRowUnit), 0} : Cut{0, share(p.n, kColumnUnit)};
}

template <class Number>
void multiply_blocks(const Product& p, const Number* a, const Number* b, float* c) {
  const auto multiply = [&](const Part& part) { blocked_gemm(p, part, a, b, c); };
  if (p.m > 0 && p.n > 0) multiply_parts(p, cut_of_blocks(p), multiply);
}

// ---- oneDNN -----------------------------------------------------------------------------------

// Leading dimensions and offsets of operands in memory.
struct Layout {
  explicit Layout(const Product& p)
      : a_row(p.transpose_a ? p.m : p.k),
        b_row(p.transpose_b ? p.k : p.n),
        a_step(p.transpose_a ? 1 : p.k),
        b_step(p.transpose_b ? p.k : 1) {}
  int64_t a_row, b_row;    // values between rows in memory
  int64_t a_step, b_step;  // values between rows of op(a) and between columns of op(b)
};

char letter(bool transpose) { return transpose ? 'T' : 'N'; }

bool multiply(const Product& p, const Part& part, const float* a, const float* b, float* c) {
  const Layout l(p);
  return dnnl_sgemm(letter(p.transpose_a), letter(p.transpose_b), part.m, part.n, p.k, p.alpha,
                    a + part.row * l.a_step, l.a_row, b + part.column * l.b_step, l.b_row, p.beta,
                    c + part.row * p.n + part.column, p.n) == dnnl_success;
}

bool multiply(const Product& p, const Part& part, const uint16_t* a, const uint16_t* b, float* c) {
  const Layout l(p);
  return dnnl_gemm_bf16bf16f32(letter(p.transpose_a), letter(p.transpose_b), part.m, part.n, p.k,
                               p.alpha, a + part.row * l.a_step, l.a_row,
                               b + part.column * l.b_step, l.b_row, p.beta,
                               c + part.row * p.n + part.column, p.n) == dnnl_success;
}

RONDO_CLONES
void add_to_row(const float* __restrict bias, float* __restrict to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] += bias[i];
}

// Runs while the part is mostly still in the L2 cache.
void add_bias(const Product& p, const Part& part, float* c) {
  if (p.bias == nullptr) return;
  for (int64_t row = part.row; row < part.row + part.m; ++row) {
    add_to_row(p.bias + part.column, c + row * p.n + part.column, part.n);
  }
}

// See thresholds.h. Both 0: oneDNN may split it.
Cut cut_for_onednn(const Product& p) {
  const int64_t threads = threads_here();
  if (threads == 1 || p.m * p.n * p.k < kWorthGemmThreads) return {};
  if (p.m >= p.n && !p.transpose_a) {
    return p.m / threads >= kCutRows ? Cut{share(p.m, 8), 0} : Cut{};
  }
  const int64_t few = p.transpose_a ? kCutOuterColumns : kCutColumns;
  if (p.n <= p.m || p.n / threads < few) return {};
  return {0, share(p.n, p.n >= threads * kCutManyUnits * kCutUnit ? kCutUnit : kCutUnit / 3)};
}

template <class Number>
void multiply_by_onednn(const Product& p, const Number* a, const Number* b, float* c) {
  const Cut cut = cut_for_onednn(p);
  std::atomic<bool> failed = false;
  const auto run = [&](const Part& part) {
    if (!multiply(p, part, a, b, c)) failed = true;
    add_bias(p, part, c);
  };
  if (cut.rows == 0 && cut.columns == 0) {
    // Not in a region of one thread: oneDNN's own would be nested, and libgomp would start new
    // threads.
    run({0, 0, p.m, p.n});
  } else {
    multiply_parts(p, cut, run);
  }
  if (failed) throw std::runtime_error("oneDNN: gemm failed");
}

}  // namespace

void gemm_by_blocks(const Product& p, const float* a, const float* b, float* c) {
  multiply_blocks(p, a, b, c);
}

// With AVX-512, oneDNN uses other kernels, and the transposed products of weight_gradient.cpp avoid
// its slow cases.
bool is_blocked(const Product& p) {
  if (cpu().avx512 || p.m * p.n * p.k < kWorthGemmThreads) return false;
  return p.transpose_a ? std::min(p.m, p.n) >= kBlockedOuterWidth
                       : p.n <= kBlockedNarrow && p.k >= kBlockedLong;
}

bool multiplies_bf16() { return cpu().avx512_bf16; }

void gemm(const Product& p, const float* a, const float* b, float* c) {
  if (is_blocked(p)) return multiply_blocks(p, a, b, c);
  multiply_by_onednn(p, a, b, c);
}

// Without native instructions, oneDNN's bf16 is several times slower than fp32 (AVX-512) or
// unsupported (AVX2).
void gemm(const Product& p, const uint16_t* a, const uint16_t* b, float* c) {
  if (!multiplies_bf16()) return multiply_blocks(p, a, b, c);
  multiply_by_onednn(p, a, b, c);
}

}  // namespace rondo::kernels
