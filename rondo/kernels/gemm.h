// Matrix multiplication by direct calls to oneDNN's gemm, without descriptors, dispatch or copies,
// which matters for the many small matmuls of a network; in bf16 it uses AMX tiles where available.
// Shapes where oneDNN is slow or unsupported go to our own loops (blocked_gemm.h). No torch
// dependency.
#pragma once

#include <cstdint>

namespace rondo::kernels {

// c [m, n] = alpha · op(a) [m, k] · op(b) [k, n] + beta · c, all contiguous and row-major; a
// transposed operand is stored transposed.
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
// a and b in bf16, accumulated in fp32.
void gemm(const Product& product, const uint16_t* a, const uint16_t* b, float* c);

// The same with our own loops, whatever is_blocked() says.
void gemm_by_blocks(const Product& product, const float* a, const float* b, float* c);

// Whether this fp32 matmul uses our own loops, which no stride slows down.
bool is_blocked(const Product& product);
// Whether the CPU multiplies bf16 natively; otherwise values are widened to fp32.
bool multiplies_bf16();

}  // namespace rondo::kernels
