// From which size on threads, another cut or another routine are worth it, and what that was
// measured with: `rondo_bench` are the single kernels (bench/*.cpp), `rondo bench` the cases of
// docs/performance.md. A waking thread costs some microseconds; where nothing else is said, a
// number is work of that order, and was not searched for with a benchmark.
#pragma once

#include <cstdint>

namespace rondo::kernels {

// ---- threads ------------------------------------------------------------------------------------

constexpr int64_t kWorthRowThreads = 1 << 14;     // entries of norms, activations, sums
constexpr int64_t kWorthLossThreads = 1 << 15;    // logits: an exponential each
constexpr int64_t kWorthGemmThreads = 1 << 21;    // multiply-adds of a large product
constexpr int64_t kWorthTileThreads = 1 << 20;    // the same by tile registers
constexpr int64_t kWorthTilePacking = 1 << 15;    // numbers laid out for them
constexpr int64_t kWorthAttention = 1 << 19;      // multiply-adds of attention, for each thread
constexpr int64_t kWorthPackedThreads = 1 << 17;  // multiply-adds with packed weights
constexpr int64_t kWorthInt8Threads = 1 << 21;    // multiply-adds of bytes
constexpr int64_t kWorthInt8Rounding = 1 << 16;   // numbers rounded to bytes
constexpr int64_t kWorthDropout = 1 << 15;        // numbers

// ---- products by oneDNN: how they are cut for threads -------------------------------------------
// One cut along the longer side, instead of both by oneDNN, which packs operands twice then, took 2
// to 9 % off training steps, images and beam search (`rondo bench`, builds in turns), as long as
// threads have so much left to do:

constexpr int64_t kCutRows = 64;           // rows of a, for each thread
constexpr int64_t kCutColumns = 96;        // or columns,
constexpr int64_t kCutOuterColumns = 256;  // of which sums of outer products want many
constexpr int64_t kCutUnit = 48;           // columns of oneDNN's kernel; a thread that has a unit
constexpr int64_t kCutManyUnits = 16;      // more is waited for, unless all have so many

// ---- products by blocks of our own, without AVX-512 ---------------------------------------------
// By `rondo_bench --benchmark_filter=^products` with AVX2: oneDNN takes up to twice as long for
// sums of outer products that are not narrow, 1.4 times for long sums with narrow results.

constexpr int64_t kBlockedOuterWidth = 96;  // both sides of a sum of outer products, at least
constexpr int64_t kBlockedNarrow = 512;     // columns, at most,
constexpr int64_t kBlockedLong = 384;       // of sums over so many, at least

// ---- bf16 ---------------------------------------------------------------------------------------

constexpr int64_t kFewRows = 32;  // below, laying out the right side costs more than it gains
// Results of a piece of rows stay in the second cache (an eighth of 2 MiB) until they are used
// again.
constexpr int64_t kPieceNumbers = 1 << 17;
// Sums of outer products with so few rows of results are turned over, so that all threads have
// some: tiles are cut along rows alone.
constexpr int64_t kLowOuterRows = 64;
// A head's weight up to here stays in the second cache, about, and may be read again for every few
// rows; beyond, oneDNN is the faster way to the gradient of its input.
constexpr int64_t kNearWeight = 1 << 21;

}  // namespace rondo::kernels
