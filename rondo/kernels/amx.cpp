// AMX tiles. A unit is a pair of bf16 values adjacent along k; a tile of the left operand is 16
// rows of 16 units, a tile of the right operand 16 units by 16 columns.
#include "rondo/kernels/amx.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "rondo/kernels/cpu.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/thresholds.h"

#if defined(__x86_64__) && defined(__linux__)
#define RONDO_TILES 1
#if !defined(__clang__)  // g++ 12 warns about its own header wherever it is inlined
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define RONDO_FOR_TILES \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16")))
#endif

namespace rondo::kernels {
namespace {

std::atomic<bool> tiles_allowed{true};

// Linux 5.16 and later.
bool ask_for_tiles() {
#ifdef RONDO_TILES
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

bool cpu_has_tiles() {
  static const bool has = cpu().amx_bf16 && ask_for_tiles();
  return has;
}

void prepare_tiles() {
  if (!ask_for_tiles()) setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16", /*overwrite=*/0);
}

bool tile_products_work() { return tiles_allowed && cpu_has_tiles(); }

void allow_tile_products(bool allow) { tiles_allowed = allow; }

#ifdef RONDO_TILES

namespace {

constexpr int64_t kTileUnits = 256;  // 16 × 16

int64_t up_to_32(int64_t count) { return (count + 31) / 32 * 32; }

struct TileShapes {  // in the CPU's format
  uint8_t palette = 1;
  uint8_t start = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
const TileShapes kTileShapes;

// Transposes 16 × 16 units: out[j][i] = in[i][j]; rows are `step` and `out_step` units apart.
RONDO_FOR_TILES RONDO_INLINE void turn_units(const uint32_t* in, int64_t step, uint32_t* out,
                                             int64_t out_step) {
  __m512i r[16];
  __m512i t[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(in + i * step);
  for (int i = 0; i < 16; i += 2) {  // pairs of rows
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {  // groups of four rows: quarter q holds columns 4q + (0 … 3)
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512i a = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    const __m512i d = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    _mm512_storeu_si512(out + out_step * i, _mm512_shuffle_i32x4(a, c, 0x88));
    _mm512_storeu_si512(out + out_step * (i + 4), _mm512_shuffle_i32x4(b, d, 0x88));
    _mm512_storeu_si512(out + out_step * (i + 8), _mm512_shuffle_i32x4(a, c, 0xdd));
    _mm512_storeu_si512(out + out_step * (i + 12), _mm512_shuffle_i32x4(b, d, 0xdd));
  }
}

// 16 values of row r, rows `step` values apart; zeros beyond `rows` and where `mask` is not set.
RONDO_FOR_TILES RONDO_INLINE __m512i row_part(const Bf16* data, int64_t step, int64_t r,
                                              int64_t rows, __mmask16 mask) {
  const auto kept = r < rows ? mask : static_cast<__mmask16>(0);
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(kept, data + r * step));
}

// Packs each pair among 32 rows as 16 units; zeros beyond `rows` and `columns`.
RONDO_FOR_TILES RONDO_INLINE void join_rows(const Bf16* data, int64_t step, int64_t rows,
                                            int64_t columns, uint32_t* out) {
  const auto mask = static_cast<__mmask16>((1U << static_cast<uint32_t>(columns)) - 1U);
  for (int64_t i = 0; i < 16; ++i) {
    const __m512i low = row_part(data, step, 2 * i, rows, mask);
    const __m512i high = _mm512_slli_epi32(row_part(data, step, 2 * i + 1, rows, mask), 16);
    _mm512_storeu_si512(out + 16 * i, _mm512_or_si512(low, high));
  }
}

RONDO_FOR_TILES
void open_tiles() { _tile_loadconfig(&kTileShapes); }
RONDO_FOR_TILES
void close_tiles() { _tile_release(); }

// One tile of the right operand.
RONDO_FOR_TILES
void pack_tile(const Bf16* data, int64_t k, int64_t n, int64_t all_k, int64_t all_n,
               bool transposed, uint32_t* out) {
  if (!transposed) {
    const int64_t columns = std::clamp<int64_t>(all_n - n, 0, 16);
    join_rows(data + k * all_n + n, all_n, all_k - k, columns, out);
  } else if (k + 32 > all_k || n + 16 > all_n || all_k % 2 != 0) {
    alignas(64) Bf16 rows[16 * 32] = {};  // zero-padded
    for (int64_t i = 0; i < std::min<int64_t>(16, all_n - n); ++i) {
      const Bf16* const row = data + (n + i) * all_k;
      std::copy(row + k, row + std::min(k + 32, all_k), rows + 32 * i);
    }
    turn_units(reinterpret_cast<const uint32_t*>(rows), 16, out, 16);
  } else {
    turn_units(reinterpret_cast<const uint32_t*>(data + n * all_k + k), all_k / 2, out, 16);
  }
}

// Columns [column, column + 32) of a [rows, n] as rows of a left operand, `step` values apart.
RONDO_FOR_TILES
void turn_columns(const Bf16* a, int64_t rows, int64_t n, int64_t column, Bf16* out, int64_t step) {
  alignas(64) uint32_t tile[kTileUnits];
  for (int64_t half = 0; half < 32; half += 16) {
    const int64_t columns = std::clamp<int64_t>(n - column - half, 0, 16);
    auto* const to = reinterpret_cast<uint32_t*>(out + half * step);
    for (int64_t r = 0; r < rows; r += 32) {
      join_rows(a + r * n + column + half, n, rows - r, columns, tile);
      turn_units(tile, 16, to + r / 2, step / 2);
    }
  }
}

// 32 rows of a left operand, `step` bytes apart.
struct LeftRows {
  const void* data = nullptr;
  int64_t step = 0;
};

// 32 × 32 sums over all terms, in registers 0 to 3 and then in `sums`.
RONDO_FOR_TILES
void tile_block(const std::vector<TileTerm>& terms, const LeftRows* left, int64_t panel,
                float* sums) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (const TileTerm& term : terms) {
    const char* upper = static_cast<const char*>(left->data);
    const int64_t step = left->step;
    const char* lower = upper + 16 * step;
    const uint32_t* right = term.b->panel(panel);
    for (int64_t s = term.b->steps(); s > 0; --s) {
      _tile_loadd(4, upper, step);
      _tile_loadd(6, right, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, right + kTileUnits, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, lower, step);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
      upper += 64;
      lower += 64;
      right += 2 * kTileUnits;
    }
    ++left;
  }
  _tile_stored(0, sums, 128);
  _tile_stored(1, sums + 16, 128);
  _tile_stored(2, sums + 16 * 32, 128);
  _tile_stored(3, sums + 16 * 32 + 16, 128);
}

// Writes `rows` by `columns` of a block of sums to their destination; rows are n values apart.
RONDO_FOR_TILES
void write_block(const float* sums, int64_t rows, int64_t columns, int64_t n, int64_t row,
                 int64_t column, const RowResults& results) {
  const auto all = static_cast<uint32_t>((uint64_t{1} << static_cast<uint64_t>(columns)) - 1);
  const auto low = static_cast<__mmask16>(all & 0xffffU);
  const auto high = static_cast<__mmask16>(all >> 16U);
  const float* bias = results.bias == nullptr ? nullptr : results.bias + column;
  const __m512 zero = _mm512_setzero_ps();
  const __m512 scale = _mm512_set1_ps(results.scale);
  const __m512 bias_low = bias == nullptr ? zero : _mm512_maskz_loadu_ps(low, bias);
  const __m512 bias_high = bias == nullptr ? zero : _mm512_maskz_loadu_ps(high, bias + 16);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = (row + r) * n + column;
    __m512 a = _mm512_fmadd_ps(_mm512_load_ps(sums + 32 * r), scale, bias_low);
    __m512 b = _mm512_fmadd_ps(_mm512_load_ps(sums + 32 * r + 16), scale, bias_high);
    if (results.addend != nullptr) {
      a = _mm512_add_ps(a, _mm512_maskz_loadu_ps(low, results.addend + at));
      b = _mm512_add_ps(b, _mm512_maskz_loadu_ps(high, results.addend + at + 16));
    }
    if (results.rounded != nullptr) {
      _mm512_mask_storeu_epi16(results.rounded + at, all, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    } else {
      _mm512_mask_storeu_ps(results.exact + at, low, a);
      _mm512_mask_storeu_ps(results.exact + at + 16, high, b);
    }
  }
}

// 32 (or 16) rows by 32 (or 16) columns stay in tile registers 0 to 3.
template <bool kTwoRows, bool kTwoColumns>
RONDO_FOR_TILES void pair_block(const PairRows& left, const PairRows& right, int64_t count,
                                bool add, float* to, int64_t to_step) {
  const int64_t a_step = left.step * 4;
  const int64_t b_step = right.step * 4;
  const int64_t c_step = to_step * 4;
  float* below = to + 16 * to_step;
  if (add) {
    _tile_loadd(0, to, c_step);
    if (kTwoColumns) _tile_loadd(1, to + 16, c_step);
    if (kTwoRows) _tile_loadd(2, below, c_step);
    if (kTwoRows && kTwoColumns) _tile_loadd(3, below + 16, c_step);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t k = 0; k < count; k += 16) {
    const float* b = right.data + k * right.step;
    _tile_loadd(4, left.data + k, a_step);
    _tile_loadd(6, b, b_step);
    _tile_dpbf16ps(0, 4, 6);
    if (kTwoColumns) {
      _tile_loadd(7, b + 16, b_step);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (kTwoRows) {
      _tile_loadd(5, left.data + 16 * left.step + k, a_step);
      _tile_dpbf16ps(2, 5, 6);
      if (kTwoColumns) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, to, c_step);
  if (kTwoColumns) _tile_stored(1, to + 16, c_step);
  if (kTwoRows) _tile_stored(2, below, c_step);
  if (kTwoRows && kTwoColumns) _tile_stored(3, below + 16, c_step);
}

// Rows [first, last) of a [·, k] in groups of 32: in place where possible, otherwise copied into
// `room` and zero-padded.
void left_groups(const Bf16* a, int64_t k, int64_t first, int64_t last, std::vector<Bf16>& room,
                 std::vector<LeftRows>& groups) {
  const int64_t wide = up_to_32(k);
  const int64_t in_place = wide == k ? (last - first) / 32 * 32 : 0;
  room.assign(static_cast<size_t>(up_to_32(last - first - in_place) * wide), Bf16{});
  groups.clear();
  for (int64_t r = first; r < first + in_place; r += 32) groups.push_back({a + r * k, 2 * k});
  for (int64_t r = first + in_place; r < last; ++r) {
    Bf16* const to = room.data() + (r - first - in_place) * wide;
    if ((r - first) % 32 == 0) groups.push_back({to, 2 * wide});
    std::copy(a + r * k, a + (r + 1) * k, to);
  }
}

}  // namespace

OpenTiles::OpenTiles() { open_tiles(); }
OpenTiles::~OpenTiles() { close_tiles(); }

RONDO_FOR_TILES
void multiply_pairs(PairRows left, const PairRows& right, int64_t rows, int64_t columns,
                    int64_t count, bool add, float* to, int64_t to_step) {
  for (int64_t m = 0; m < rows; m += 32) {
    PairRows part = right;
    float* at = to;
    const bool two_rows = m + 16 < rows;
    for (int64_t n = 0; n < columns; n += 32) {
      auto* const block = n + 16 < columns
                              ? (two_rows ? pair_block<true, true> : pair_block<false, true>)
                              : (two_rows ? pair_block<true, false> : pair_block<false, false>);
      block(left, part, count, add, at, to_step);
      part.data += 32;
      at += 32;
    }
    left.data += 32 * left.step;
    to += 32 * to_step;
  }
}

TiledMatrix::TiledMatrix(const Bf16* data, int64_t k, int64_t n, bool transposed)
    : k_(k), n_(n), tiles_(up_to_32(k) * up_to_32(n) / 2) {
  const int64_t panels = up_to_32(n) / 32;
  parallel_for(panels, k * n > kWorthTilePacking, [&](int64_t p) {
    for (int64_t s = 0; s < steps(); ++s) {
      uint32_t* out = tiles_.get() + (p * steps() + s) * 2 * kTileUnits;
      pack_tile(data, 32 * s, 32 * p, k, n, transposed, out);
      pack_tile(data, 32 * s, 32 * p + 16, k, n, transposed, out + kTileUnits);
    }
  });
}

void tile_products(const std::vector<TileTerm>& terms, int64_t first, int64_t last,
                   const RowResults& results) {
  const int64_t n = terms.front().b->columns();
  std::vector<std::vector<Bf16>> rooms(terms.size());
  std::vector<LeftRows> left;  // [groups, terms]
  std::vector<LeftRows> groups;
  left.resize(static_cast<size_t>((last - first + 31) / 32) * terms.size());
  for (size_t t = 0; t < terms.size(); ++t) {
    left_groups(terms[t].a, terms[t].b->rows(), first, last, rooms[t], groups);
    for (size_t g = 0; g < groups.size(); ++g) left[g * terms.size() + t] = groups[g];
  }
  alignas(64) float sums[32 * 32];
  const OpenTiles open;
  // 32 rows stay in the L1 cache while the right operand streams in order from L2.
  const LeftRows* group = left.data();
  for (int64_t r = first; r < last; r += 32) {
    for (int64_t column = 0; column < n; column += 32) {
      tile_block(terms, group, column / 32, sums);
      write_block(sums, std::min<int64_t>(32, last - r), std::min<int64_t>(32, n - column), n, r,
                  column, results);
    }
    group += terms.size();
  }
}

void tile_weight_gradient(const WeightGradientShape& p, const Bf16* a, const Bf16* b, float* c) {
  constexpr int64_t kRightNumbers = int64_t{1} << 19;  // 1 MiB: half of an L2 cache
  const int64_t most = std::clamp<int64_t>(kRightNumbers / up_to_32(p.k), 256, 4096) / 32 * 32;
  const int64_t strips = (p.n + 31) / 32;
  RowResults to;
  to.exact = c;
  to.scale = p.scale;
  for (int64_t first = 0; first < p.rows; first += most) {
    const int64_t rows = std::min(most, p.rows - first);
    const TiledMatrix right(b + first * p.k, rows, p.k, /*transposed=*/false);
    const std::vector<TileTerm> terms = {{nullptr, &right}};
    const int64_t step = up_to_32(rows) + 32;  // not a power of two: rows in different cache sets
    if (p.add || first > 0) to.addend = c;
    const bool worth = p.n * p.k * rows > kWorthTileThreads;
    parallel_ranges(strips, worth, [&](int64_t first_strip, int64_t last_strip) {
      const AlignedNumbers<Bf16> left(32 * step);
      alignas(64) float sums[32 * 32];
      const OpenTiles open;
      for (int64_t s = first_strip; s < last_strip; ++s) {
        turn_columns(a + first * p.n, rows, p.n, 32 * s, left.get(), step);
        const LeftRows group = {left.get(), 2 * step};
        for (int64_t column = 0; column < p.k; column += 32) {
          tile_block(terms, &group, column / 32, sums);
          write_block(sums, std::min<int64_t>(32, p.n - 32 * s),
                      std::min<int64_t>(32, p.k - column), p.k, 32 * s, column, to);
        }
      }
    });
  }
}

#else

OpenTiles::OpenTiles() = default;
OpenTiles::~OpenTiles() = default;
void multiply_pairs(PairRows /*left*/, const PairRows& /*right*/, int64_t /*rows*/,
                    int64_t /*columns*/, int64_t /*count*/, bool /*add*/, float* /*to*/,
                    int64_t /*to_step*/) {
  throw std::logic_error("no tiles on this CPU");
}
TiledMatrix::TiledMatrix(const Bf16* /*data*/, int64_t /*k*/, int64_t /*n*/, bool /*transposed*/) {
  throw std::logic_error("no tiles on this CPU");
}
void tile_products(const std::vector<TileTerm>& /*terms*/, int64_t /*first*/, int64_t /*last*/,
                   const RowResults& /*results*/) {
  throw std::logic_error("no tiles on this CPU");
}
void tile_weight_gradient(const WeightGradientShape& /*p*/, const Bf16* /*a*/, const Bf16* /*b*/,
                          float* /*c*/) {
  throw std::logic_error("no tiles on this CPU");
}

#endif

}  // namespace rondo::kernels
