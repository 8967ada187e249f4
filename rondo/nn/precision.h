// Mixed precision: fp32 master weights and residual stream, bf16 where it pays. Which operation
// runs in what is this one table; the rest follows from torch's promotion (fp32 + bf16 = fp32).
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

// Whether `operation` on numbers of this type runs in bf16 now. Doubles, of gradient checks, never.
bool runs_in_bf16(Operation operation, at::ScalarType type);

// Whether bf16 products are done in hardware here.
bool cpu_has_bf16();

}  // namespace rondo::nn
