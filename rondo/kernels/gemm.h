// Matrix products by oneDNN's gemm, called directly: no descriptor, no dispatch, no copy, which
// counts for the many small products of a network; in bf16 it also uses AMX tiles where the CPU has
// them. What it is slow at, or cannot do, our own loops do (blocked_gemm.h). No torch here.
#pragma once

#include <cstdint>

namespace rondo::kernels {

// c [m, n] = alpha · op(a) [m, k] · op(b) [k, n] + beta · c, all contiguous and row-major; a
// transposed operand lies in memory as its transpose does.
struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  float alpha = 1.0F;
  float beta = 0.0F;
  const float* bias = nullptr;  // [n], added to every row; may be null
};

void gemm(const Product& product, const float* a, const float* b, float* c);
// a and b in bf16, products summed in fp32.
void gemm(const Product& product, const uint16_t* a, const uint16_t* b, float* c);

// The same by our own loops, whatever is_blocked() says.
void gemm_by_blocks(const Product& product, const float* a, const float* b, float* c);

// Whether this product of fp32 numbers is one for our own loops, which no stride slows down.
bool is_blocked(const Product& product);
// Whether products of bf16 numbers are the CPU's own; else they are widened to fp32 on the way.
bool multiplies_bf16();

}  // namespace rondo::kernels
