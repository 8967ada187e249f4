// Attention of one query over the keys of one head, for token-by-token decoding. No torch
// dependency.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {

// out = softmax((q·k_j + bias_j) · scale) · v over `count` keys; zeros if there are no keys.
struct OneQuery {
  const float* q = nullptr;  // [width]
  const float* keys = nullptr;
  const float* values = nullptr;
  int64_t stride = 0;  // from one key (and value) to the next
  int64_t count = 0;
  int64_t width = 0;
  float scale = 1.0F;
  const float* bias = nullptr;  // [count] or null
};
void attend_one(const OneQuery& query, float* scores /* scratch [count] */, float* out);

// Only the scores q · k_j of all keys.
void score_keys(const OneQuery& query, float* scores /* [count] */);

// The same over keys and values at arbitrary addresses.
struct ScatteredQuery {
  const float* q = nullptr;            // [width]
  const float* const* keys = nullptr;  // [count]: start of each row, which holds all heads
  const float* const* values = nullptr;
  int64_t offset = 0;  // of the head within a row
  int64_t count = 0;
  int64_t width = 0;
  float scale = 1.0F;
  const float* bias = nullptr;  // [count] or null
};
void attend_one(const ScatteredQuery& query, float* scores /* scratch [count] */, float* out);

// Keys and values of one head in bf16, laid out to avoid sums across lanes: keys in panels of 16
// positions, as weights are (packed.h); values in pairs of positions.
struct RoundedHead {
  Bf16* keys = nullptr;    // [places / 16, width / 2, 16, 2], 64-byte aligned
  Bf16* values = nullptr;  // [places / 2, width up to a multiple of 16, 2], likewise
  int64_t width = 0;
};
// Number of values in `keys`, and in `values`. Both must be zero-initialized.
int64_t rounded_size(int64_t places, int64_t width);
void put_rounded(const RoundedHead& head, int64_t place, const float* key, const float* value);
// Moves positions [count, 2 count) to [0, count); count is a multiple of 16.
void move_rounded(const RoundedHead& head, int64_t count);

// The same over keys [first, first + count) of a head.
struct RoundedQuery {
  const float* q = nullptr;  // read up to an even width, which must hold finite values
  RoundedHead head;
  int64_t first = 0;
  int64_t count = 0;
  float scale = 1.0F;
  const float* bias = nullptr;  // [count] or null
};
constexpr int64_t kRoundedScores = 32;  // extra scratch beyond one score per key
void attend_one(const RoundedQuery& query, float* scores /* [count + 32] */, float* out);

}  // namespace rondo::kernels
