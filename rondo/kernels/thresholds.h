// Sizes from which threads, another split or another routine pay off, and how they were measured:
// `rondo_bench` runs single kernels (bench/kernels/), `rondo bench` the cases of
// docs/performance.md. Waking a thread costs a few microseconds; unless stated otherwise, a
// threshold is work of that order and was not tuned by benchmark.
#pragma once

#include <cstdint>

namespace rondo::kernels {

// ---- threads ------------------------------------------------------------------------------------

constexpr int64_t kWorthRowThreads = 1 << 14;     // entries of norms, activations, sums
constexpr int64_t kWorthLossThreads = 1 << 15;    // logits: one exponential each
constexpr int64_t kWorthGemmThreads = 1 << 21;    // multiply-adds of a large matmul
constexpr int64_t kWorthTileThreads = 1 << 20;    // the same with AMX tiles
constexpr int64_t kWorthTilePacking = 1 << 15;    // values packed for them
constexpr int64_t kWorthAttention = 1 << 19;      // multiply-adds of attention, per thread
constexpr int64_t kWorthPackedThreads = 1 << 17;  // multiply-adds with packed weights
constexpr int64_t kWorthInt8Threads = 1 << 21;    // int8 multiply-adds
constexpr int64_t kWorthInt8Rounding = 1 << 16;   // values quantized to int8
constexpr int64_t kWorthDropout = 1 << 15;        // values

// ---- oneDNN matmuls: how they are split across threads ------------------------------------------
// One split along the longer side, instead of oneDNN's along both, which packs operands twice, took
// 2 to 9 % off training steps, images and beam search (`rondo bench`, alternating builds), as long
// as each thread has at least this much left to do:

constexpr int64_t kCutRows = 64;           // rows of a, per thread
constexpr int64_t kCutColumns = 96;        // or columns,
constexpr int64_t kCutOuterColumns = 256;  // of which sums of outer products need more
constexpr int64_t kCutUnit = 48;           // columns of oneDNN's kernel; a thread with one unit
constexpr int64_t kCutManyUnits = 16;      // more holds up the rest, unless all have this many

// ---- our own blocked matmuls, without AVX-512 ---------------------------------------------------
// From `rondo_bench --benchmark_filter=^products` with AVX2: oneDNN takes up to twice as long for
// sums of outer products that are not narrow, 1.4 times for long sums with narrow results.

constexpr int64_t kBlockedOuterWidth = 96;  // minimum for both sides of a sum of outer products
constexpr int64_t kBlockedNarrow = 512;     // maximum columns,
constexpr int64_t kBlockedLong = 384;       // for sums over at least this many terms

// ---- bf16 ---------------------------------------------------------------------------------------

constexpr int64_t kFewRows = 32;  // below this, packing the right side costs more than it gains
// Results of a piece of rows stay in L2 (an eighth of 2 MiB) until they are used again.
constexpr int64_t kPieceNumbers = 1 << 17;
// Sums of outer products with this few result rows are transposed so that all threads have work:
// tiles are split along rows only.
constexpr int64_t kLowOuterRows = 64;
// A head weight up to this size roughly fits in L2 and may be reread for every few rows; beyond it,
// oneDNN computes the gradient of its input faster.
constexpr int64_t kNearWeight = 1 << 21;

}  // namespace rondo::kernels
