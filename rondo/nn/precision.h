// Mixed precision: fp32 master weights, residual stream, statistics, sums and losses; bf16 for
// matmul factors and for branches, the intermediates that one kernel passes to the next. The table
// below says what each operation runs in; the rest follows from torch's promotion
// (fp32 + bf16 = fp32).
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

// While an instance exists on this thread, operations follow the table.
class MixedPrecision {
 public:
  explicit MixedPrecision(bool enabled);
  ~MixedPrecision();
  MixedPrecision(const MixedPrecision&) = delete;
  MixedPrecision& operator=(const MixedPrecision&) = delete;

 private:
  bool before_;
};

// `x` as `operation` needs it: bf16, fp32, or unchanged if mixed precision is off.
Tensor as_wanted(Operation operation, const Tensor& x);

// Purpose of a result: the residual stream or a loss (at least fp32), or a branch, which only other
// kernels read (queries, keys, values, normalized rows, hidden rows): bf16 under mixed precision.
enum class Result { stream, branch };
// Whether branch results are currently bf16; never with plain operations, whose sums would be bf16
// too.
bool branches_in_bf16();

// A weight in bf16. For a parameter, the copy is made once per MixedPrecision scope, however often
// the weight is used, and again if the weight has changed.
Tensor bf16_weight(const Tensor& weight);

// Whether `operation` on this type currently runs in bf16. Doubles (gradient checks) never do.
bool runs_in_bf16(Operation operation, at::ScalarType type);

// Whether this CPU multiplies bf16 in hardware. Otherwise bf16 is computed in fp32, no faster.
bool cpu_has_bf16();

}  // namespace rondo::nn
