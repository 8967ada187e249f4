// The precision table at work.
#include "rondo/nn/precision.h"

#include <cstdlib>

namespace rondo::nn {
namespace {

thread_local bool mixed_precision = false;

// Debian's oneDNN takes AMX tiles where the CPU has them without asking the kernel for leave, and
// dies of it. It reads this limit at its first use, so loading our library is early enough.
[[maybe_unused]] const int onednn_limit = setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16", 0);

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

bool cpu_has_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace rondo::nn
