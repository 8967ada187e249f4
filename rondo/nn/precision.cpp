// The precision table at work.
#include "rondo/nn/precision.h"

#include "rondo/kernels/gemm.h"

namespace rondo::nn {
namespace {

thread_local bool mixed_precision = false;

// Loading our library is before oneDNN's first use.
[[maybe_unused]] const bool tiles_prepared = (kernels::prepare_tiles(), true);

bool wants_bf16(Operation operation) {
  for (const OperationPrecision& entry : kMixedPrecision) {
    if (entry.operation == operation) return entry.bf16;
  }
  return false;
}

}  // namespace

MixedPrecision::MixedPrecision(bool enabled) : before_(mixed_precision) {
  mixed_precision = enabled;
}
MixedPrecision::~MixedPrecision() { mixed_precision = before_; }

Tensor as_wanted(Operation operation, const Tensor& x) {
  if (!mixed_precision) return x;
  return x.to(wants_bf16(operation) ? at::kBFloat16 : at::kFloat);
}

bool runs_in_bf16(Operation operation, at::ScalarType type) {
  return mixed_precision && wants_bf16(operation) && type != at::kDouble;
}

bool cpu_has_bf16() {
#if defined(__x86_64__)
  return kernels::has_gemm() && __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace rondo::nn
