// Many rows with weights that were packed once (packed.h): what a search does for every token, with
// too few rows to pay for packing again and again. Weights in fewer bits are widened panel by
// panel, in the second cache; rows are fp32 and stay so. No torch here.
#pragma once

#include "rondo/kernels/packed.h"

namespace rondo::kernels {

// Work is best cut at multiples of so many panels.
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

// y [rows, out] = x [rows, in] · wᵀ (+ bias [out], may be null), the columns of panels
// [first, last). Each sum is over columns in order, whoever computes it: the same bits as matvec().
void packed_rows(const PackedMatrix& w, const InputRows& x, const float* bias, int64_t first,
                 int64_t last, const OutputRows& y);

}  // namespace rondo::kernels
