// Packs and multiplies blocks of both operands; compiled for each target.
#include "rondo/kernels/blocked_gemm.h"

#include <algorithm>
#include <vector>

#include "rondo/kernels/vector_math.h"

// SSSE3 is not worth its compile time; Arm's scalable vectors cannot be array elements.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rondo/kernels/blocked_gemm.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target but the last

#include <hwy/highway.h>

#include "rondo/kernels/register_product-inl.h"

RONDO_BEFORE_KERNELS();
namespace rondo::kernels::HWY_NAMESPACE {
namespace {

// A panel is as many columns, and a group as many rows, as registers can hold sums for.
constexpr int64_t kPanelColumns = kMostVectors * kLanes;
constexpr int64_t kGroupRows = most_rows(kMostVectors);
// A panel of the right operand stays in L1 while a block of the left operand streams from L2; a
// block of the right operand stays in L3.
constexpr int64_t kBlockDepth = 256;
constexpr int64_t kBlockRows = 16 * kGroupRows;
constexpr int64_t kBlockColumns = 2048;

RONDO_INLINE float number(float x) { return x; }
RONDO_INLINE float number(uint16_t x) { return widen(Bf16{x}); }

// An operand in memory: entry (i, j) is at data[i · row + j · column].
template <class Number>
struct Operand {
  const Number* data;
  int64_t row, column;
  const Number* at(int64_t i, int64_t j) const { return data + i * row + j * column; }
};

// ---- packing ----------------------------------------------------------------------------------

constexpr int64_t kSquare = 4;
using Quad = hn::CappedTag<float, kSquare>;

HWY_INLINE hn::Vec<Quad> load_quad(const float* from) { return hn::LoadU(Quad(), from); }
HWY_INLINE hn::Vec<Quad> load_quad(const uint16_t* from) {
  const hn::RebindToUnsigned<Quad> bits;
  const auto half = hn::LoadU(hn::Rebind<uint16_t, Quad>(), from);
  return hn::BitCast(Quad(), hn::ShiftLeft<16>(hn::PromoteTo(bits, half)));
}

// Transposes up to four columns of k values, `step` apart, into rows, in 4 × 4 squares in
// registers.
template <class Number>
void turn_columns(const Number* from, int64_t step, int64_t k, int64_t columns, float alpha,
                  float* to) {
  [[maybe_unused]] const Quad d;
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if (columns == kSquare) {
    const auto factor = hn::Set(d, alpha);
    for (; i + kSquare <= k; i += kSquare) {
      const auto c0 = hn::Mul(load_quad(from + i), factor);
      const auto c1 = hn::Mul(load_quad(from + step + i), factor);
      const auto c2 = hn::Mul(load_quad(from + 2 * step + i), factor);
      const auto c3 = hn::Mul(load_quad(from + 3 * step + i), factor);
      const auto low01 = hn::InterleaveLower(d, c0, c1);
      const auto low23 = hn::InterleaveLower(d, c2, c3);
      const auto high01 = hn::InterleaveUpper(d, c0, c1);
      const auto high23 = hn::InterleaveUpper(d, c2, c3);
      float* at = to + i * kPanelColumns;
      hn::StoreU(hn::ConcatLowerLower(d, low23, low01), d, at);
      hn::StoreU(hn::ConcatUpperUpper(d, low23, low01), d, at + kPanelColumns);
      hn::StoreU(hn::ConcatLowerLower(d, high23, high01), d, at + 2 * kPanelColumns);
      hn::StoreU(hn::ConcatUpperUpper(d, high23, high01), d, at + 3 * kPanelColumns);
    }
  }
#endif
  for (; i < k; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      to[i * kPanelColumns + j] = alpha * number(from[j * step + i]);
  }
}

// Packs a block of the right operand [k, n] → [panels, k, kPanelColumns], zero-padded.
template <class Number>
void lay_out_right(const Operand<Number>& b, int64_t k, int64_t n, float alpha, float* to) {
  const int64_t whole = n / kPanelColumns;
  if (whole * kPanelColumns < n)
    std::fill_n(to + whole * k * kPanelColumns, k * kPanelColumns, 0.0F);
  if (b.column == 1) {
    for (int64_t i = 0; i < k; ++i) {
      const Number* from = b.at(i, 0);
      float* row = to + i * kPanelColumns;
      for (int64_t p = 0; p < whole; ++p, from += kPanelColumns, row += k * kPanelColumns) {
        for (int64_t j = 0; j < kPanelColumns; ++j) row[j] = alpha * number(from[j]);
      }
      for (int64_t j = 0; j < n - whole * kPanelColumns; ++j) row[j] = alpha * number(from[j]);
    }
    return;
  }
  for (int64_t j = 0; j < n; j += kSquare) {
    float* panel = to + j / kPanelColumns * k * kPanelColumns + j % kPanelColumns;
    turn_columns(b.at(0, j), b.column, k, std::min(kSquare, n - j), alpha, panel);
  }
}

// Packs a block of the left operand [m, k] with contiguous columns → [groups, k, kGroupRows].
template <class Number>
void lay_out_left(const Operand<Number>& a, int64_t m, int64_t k, float* to) {
  const int64_t whole = m / kGroupRows;
  for (int64_t j = 0; j < k; ++j) {
    const Number* from = a.at(0, j);
    float* group = to + j * kGroupRows;
    for (int64_t g = 0; g < whole; ++g, from += kGroupRows, group += k * kGroupRows) {
      for (int64_t i = 0; i < kGroupRows; ++i) group[i] = number(from[i]);
    }
    for (int64_t i = 0; i < m - whole * kGroupRows; ++i) group[i] = number(from[i]);
  }
}

// Copies a block of the left operand in order, widened: [m, k].
template <class Number>
void copy_left(const Operand<Number>& a, int64_t m, int64_t k, float* to) {
  for (int64_t i = 0; i < m; ++i) {
    const Number* from = a.at(i, 0);
    for (int64_t j = 0; j < k; ++j) to[i * k + j] = number(from[j]);
  }
}

// Whether rows fall into the same cache sets and evict each other: multiples of half a page apart.
bool rows_collide(int64_t step) { return step % 512 == 0; }

// A block of the left operand, ready to be multiplied.
struct LeftBlock {
  const float* data;
  bool grouped;  // [groups, k, kGroupRows], otherwise [m, step]
  int64_t step;
};

// ---- multiplying ------------------------------------------------------------------------------

// Destination of a tile's results; holds their initial values.
struct Tile {
  float* data;
  int64_t step;
  int64_t rows, columns;
};

// beta · c + bias.
void scale_and_shift(const Tile& tile, float beta, const float* bias) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    float* row = tile.data + i * tile.step;
    for (int64_t j = 0; j < tile.columns; ++j) {
      const float kept = beta == 0.0F ? 0.0F : beta * row[j];
      row[j] = bias != nullptr ? kept + bias[j] : kept;
    }
  }
}

// Prepares a tile for accumulation. True if there are values to add to.
bool begin_tile(const Tile& tile, float beta, const float* bias) {
  if (bias == nullptr && (beta == 0.0F || beta == 1.0F)) return beta != 0.0F;
  scale_and_shift(tile, beta, bias);
  return true;
}

void multiply_panel(const LeftBlock& left, const float* panel, int64_t rows, int64_t k,
                    const Product& to) {
  const Right right = {panel, kPanelColumns};
  if (!left.grouped) {
    return product_columns<Fp32Math, kMostVectors, false>({left.data, left.step}, right, rows, k,
                                                          to);
  }
  for (int64_t i = 0; i < rows; i += kGroupRows) {
    product_columns<Fp32Math, kMostVectors, true>({left.data + i * k, kGroupRows}, right,
                                                  std::min(kGroupRows, rows - i), k,
                                                  {to.data + i * to.step, to.step, to.add});
  }
}

// The last panel may be narrower than registers: multiplied via a temporary.
void multiply_narrow(const LeftBlock& left, const float* panel, int64_t k, const Tile& tile,
                     bool add) {
  HWY_ALIGN float sums[kBlockRows * kPanelColumns];
  multiply_panel(left, panel, tile.rows, k, {sums, kPanelColumns, false});
  for (int64_t i = 0; i < tile.rows; ++i) {
    for (int64_t j = 0; j < tile.columns; ++j) {
      float& to = tile.data[i * tile.step + j];
      to = (add ? to : 0.0F) + sums[i * kPanelColumns + j];
    }
  }
}

// Memory reused by the next product.
struct Room {
  std::vector<float> left = std::vector<float>(kBlockRows * kBlockDepth);
  std::vector<float> right;
  float* right_of(int64_t numbers) {
    constexpr int64_t kLine = 64 / sizeof(float);
    const auto size = static_cast<size_t>(numbers + kLine);
    if (right.size() < size) right.resize(size);
    const auto past = reinterpret_cast<uintptr_t>(right.data()) / sizeof(float) % kLine;
    return right.data() + (kLine - past) % kLine;
  }
};

template <class Number>
LeftBlock left_block(const Operand<Number>& a, int64_t m, int64_t k, Room& room) {
  if (a.row == 1) {
    lay_out_left(a, m, k, room.left.data());
    return {room.left.data(), true, 0};
  }
  if constexpr (sizeof(Number) == sizeof(float)) {
    if (!rows_collide(a.row)) return {a.data, false, a.row};
  }
  copy_left(a, m, k, room.left.data());
  return {room.left.data(), false, k};
}

template <class Number>
void multiply_part(const kernels::Product& p, const Part& part, const Number* a, const Number* b,
                   float* c) {
  if (p.k == 0) {  // a and b may be null
    const float* bias = p.bias != nullptr ? p.bias + part.column : nullptr;
    return scale_and_shift({c + part.row * p.n + part.column, p.n, part.m, part.n}, p.beta, bias);
  }
  thread_local Room room;
  const Operand<Number> left = {a, p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1};
  const Operand<Number> right = {b, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1};
  const int64_t last_row = part.row + part.m;
  const int64_t last_column = part.column + part.n;
  for (int64_t column = part.column; column < last_column; column += kBlockColumns) {
    const int64_t n = std::min(kBlockColumns, last_column - column);
    for (int64_t depth = 0; depth < p.k; depth += kBlockDepth) {
      const int64_t k = std::min(kBlockDepth, p.k - depth);
      float* panels = room.right_of(round_up(n, kPanelColumns) * k);
      lay_out_right<Number>({right.at(depth, column), right.row, right.column}, k, n, p.alpha,
                            panels);
      for (int64_t row = part.row; row < last_row; row += kBlockRows) {
        const int64_t m = std::min(kBlockRows, last_row - row);
        const LeftBlock block =
            left_block<Number>({left.at(row, depth), left.row, left.column}, m, k, room);
        for (int64_t j = 0; j < n; j += kPanelColumns) {
          const Tile tile = {c + row * p.n + column + j, p.n, m, std::min(kPanelColumns, n - j)};
          const float* bias = p.bias != nullptr ? p.bias + column + j : nullptr;
          const bool add = depth > 0 || begin_tile(tile, p.beta, bias);
          if (tile.columns == kPanelColumns) {
            multiply_panel(block, panels + j * k, m, k, {tile.data, tile.step, add});
          } else {
            multiply_narrow(block, panels + j * k, k, tile, add);
          }
        }
      }
    }
  }
}

void multiply_fp32(const kernels::Product& p, const Part& part, const float* a, const float* b,
                   float* c) {
  multiply_part(p, part, a, b, c);
}
void multiply_bf16(const kernels::Product& p, const Part& part, const uint16_t* a,
                   const uint16_t* b, float* c) {
  multiply_part(p, part, a, b, c);
}

}  // namespace
}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::kernels {

HWY_EXPORT(multiply_fp32);
HWY_EXPORT(multiply_bf16);

void blocked_gemm(const Product& p, const Part& part, const float* a, const float* b, float* c) {
  HWY_DYNAMIC_DISPATCH(multiply_fp32)(p, part, a, b, c);
}

void blocked_gemm(const Product& p, const Part& part, const uint16_t* a, const uint16_t* b,
                  float* c) {
  HWY_DYNAMIC_DISPATCH(multiply_bf16)(p, part, a, b, c);
}

}  // namespace rondo::kernels
#endif
