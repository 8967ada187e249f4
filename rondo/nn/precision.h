// Mixed precision: fp32 master weights, residual stream, statistics, sums and losses; bf16 for the
// factors of products, and for branches: what one kernel leaves for the next. Which operation runs
// in what is this one table; the rest follows from torch's promotion (fp32 + bf16 = fp32).
#pragma once

#include "rondo/nn/torch.h"

namespace rondo::nn {

enum class Operation { linear, matmul, convolution, norm, softmax, loss };

struct OperationPrecision {
  Operation operation;
  bool bf16;  // inputs are rounded to bf16; products are accumulated in fp32
};

constexpr OperationPrecision kMixedPrecision[] = {
    {Operation::linear, true}, {Operation::matmul, true},   {Operation::convolution, false},
    {Operation::norm, false},  {Operation::softmax, false}, {Operation::loss, false},
};

// While one of these lives on this thread, operations follow the table.
class MixedPrecision {
 public:
  explicit MixedPrecision(bool enabled);
  ~MixedPrecision();
  MixedPrecision(const MixedPrecision&) = delete;
  MixedPrecision& operator=(const MixedPrecision&) = delete;

 private:
  bool before_;
};

// `x` as `operation` wants it now: bf16, fp32, or untouched when mixed precision is off.
Tensor as_wanted(Operation operation, const Tensor& x);

// What a result is for: the residual stream or a loss (fp32 at least), or a branch, which only
// other kernels read (queries, keys, values, normalized rows, hidden rows): bf16 under mixed
// precision.
enum class Result { stream, branch };
// Whether results for a branch are bf16 now: not by plain operations, whose sums would be too.
bool branches_in_bf16();

// A weight in bf16. Of a parameter the copy is made once while a MixedPrecision lives, however
// often the weight is used, and again if the weight has changed in between.
Tensor bf16_weight(const Tensor& weight);

// Whether `operation` on numbers of this type runs in bf16 now. Doubles, of gradient checks, never.
bool runs_in_bf16(Operation operation, at::ScalarType type);

// Whether bf16 products are done in hardware here. Elsewhere they are worked in fp32: no faster.
bool cpu_has_bf16();

}  // namespace rondo::nn
