// Multiplies several rows by weights packed once (packed.h): search does this for every token, with
// too few rows to pay for repacking. Narrower weights are widened panel by panel in the L2 cache;
// rows stay fp32. No torch dependency.
#pragma once

#include "rondo/kernels/packed.h"

namespace rondo::kernels {

// Work is best split at multiples of this many panels.
constexpr int64_t kPanelsTogether = 4;

struct InputRows {
  const float* data = nullptr;
  int64_t count = 0;
  int64_t stride = 0;  // from one row to the next
};
struct OutputRows {
  float* data = nullptr;
  int64_t stride = 0;
};

// y [rows, out] = x [rows, in] · wᵀ (+ bias [out], may be null) for the columns of panels
// [first, last). Sums run over columns in order regardless of the split: bitwise equal to matvec().
void packed_rows(const PackedMatrix& w, const InputRows& x, const float* bias, int64_t first,
                 int64_t last, const OutputRows& y);

}  // namespace rondo::kernels
