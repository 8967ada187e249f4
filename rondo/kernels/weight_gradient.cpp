// Chooses how a sum of outer products is computed.
#include "rondo/kernels/weight_gradient.h"

#include <algorithm>

#include "rondo/kernels/gemm.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/thresholds.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kPage = 4096;  // bytes
constexpr int64_t kTurn = 16;    // values: a cache line

// Whether the entries of a column fall into one L1 cache set, which makes gathering columns slow.
bool columns_collide(int64_t width) {
  return width * static_cast<int64_t>(sizeof(float)) % kPage == 0;
}

Product product_of(const WeightGradientShape& p) {
  Product product;
  product.transpose_a = true;
  product.m = p.n;
  product.n = p.k;
  product.k = p.rows;
  product.alpha = p.scale;
  product.beta = p.add ? 1.0F : 0.0F;
  return product;
}

// c [n, k] = turned [k, n]ᵀ, or adds it.
void turn_back(const float* turned, const WeightGradientShape& p, float* c) {
  parallel_for((p.n + kTurn - 1) / kTurn, true, [&](int64_t piece) {
    const int64_t first = piece * kTurn;
    const int64_t last = std::min(p.n, first + kTurn);
    for (int64_t j = 0; j < p.k; ++j) {
      const float* const from = turned + j * p.n;
      for (int64_t i = first; i < last; ++i) {
        float& to = c[i * p.k + j];
        to = p.add ? to + from[i] : from[i];
      }
    }
  });
}

// Computes c via its transpose, which `multiply` writes to the buffer it is given.
template <class Multiply>
void multiply_turned(const WeightGradientShape& p, float* c, const Multiply& multiply) {
  WeightGradientShape turned = p;
  std::swap(turned.n, turned.k);
  turned.add = false;
  const AlignedNumbers<float> room(p.n * p.k);
  multiply(turned, room.get());
  turn_back(room.get(), p, c);
}

bool is_low(const WeightGradientShape& p) { return p.n <= kLowOuterRows && p.k > 2 * p.n; }

}  // namespace

void weight_gradient(const WeightGradientShape& p, const float* a, const float* b, float* c) {
  const Product product = product_of(p);
  if (is_blocked(product) || !columns_collide(p.n) || columns_collide(p.k)) {
    return gemm(product, a, b, c);
  }
  multiply_turned(p, c, [&](const WeightGradientShape& turned, float* room) {
    gemm(product_of(turned), b, a, room);
  });
}

void weight_gradient(const WeightGradientShape& p, const Bf16* a, const Bf16* b, float* c) {
  if (!tile_products_work()) {
    return gemm(product_of(p), reinterpret_cast<const uint16_t*>(a),
                reinterpret_cast<const uint16_t*>(b), c);
  }
  if (!is_low(p)) return tile_weight_gradient(p, a, b, c);
  multiply_turned(p, c, [&](const WeightGradientShape& turned, float* room) {
    tile_weight_gradient(turned, b, a, room);
  });
}

}  // namespace rondo::kernels
