// Shared by tests of bf16 products: random numbers, and every case with and without tile registers.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "rondo/kernels/amx.h"
#include "rondo/kernels/gemm.h"

namespace rondo::kernels {

// Numbers between -1/2 and 1/2, float or Bf16.
template <class Number>
std::vector<Number> drawn_numbers(int64_t count, uint32_t seed) {
  std::vector<Number> numbers(static_cast<size_t>(count));
  for (Number& x : numbers) {
    seed = seed * 1664525U + 1013904223U;
    narrow(static_cast<float>(seed >> 8U) / 16777216.0F - 0.5F, x);
  }
  return numbers;
}

// By tiles where the CPU has them (true), and by gemm.
class TilesOrGemm : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    prepare_tiles();
    allow_tile_products(GetParam());
    if (GetParam() && !tile_products_work()) GTEST_SKIP() << "this CPU has no tiles";
  }
  void TearDown() override { allow_tile_products(true); }
};

}  // namespace rondo::kernels
