// Applies the precision table.
#include "rondo/nn/precision.h"

#include <unordered_map>

#include "rondo/kernels/amx.h"
#include "rondo/kernels/gemm.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo::nn {
namespace {

thread_local bool mixed_precision = false;

struct RoundedWeight {
  Tensor weight;  // held, so that no other tensor reuses its address
  const void* data = nullptr;
  uint32_t version = 0;
  Tensor bf16;
};
thread_local std::unordered_map<const void*, RoundedWeight> rounded_weights;

// Runs when our library is loaded, before oneDNN's first use.
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
MixedPrecision::~MixedPrecision() {
  mixed_precision = before_;
  if (!mixed_precision) rounded_weights.clear();
}

bool branches_in_bf16() { return mixed_precision && kernels_in_use() == Kernels::fused; }

Tensor bf16_weight(const Tensor& weight) {
  if (weight.scalar_type() == at::kBFloat16) return weight.contiguous();
  const auto round = [&] { return weight.detach().to(at::kBFloat16).contiguous(); };
  if (!mixed_precision || !weight.is_leaf() || !weight.requires_grad()) return round();
  RoundedWeight& entry = rounded_weights[weight.unsafeGetTensorImpl()];
  if (entry.data != weight.data_ptr() || entry.version != weight._version()) {
    entry = {weight, weight.data_ptr(), static_cast<uint32_t>(weight._version()), round()};
  }
  return entry.bf16;
}

Tensor as_wanted(Operation operation, const Tensor& x) {
  if (!mixed_precision) return x;
  return x.to(wants_bf16(operation) ? at::kBFloat16 : at::kFloat);
}

bool runs_in_bf16(Operation operation, at::ScalarType type) {
  return mixed_precision && wants_bf16(operation) && type != at::kDouble;
}

bool cpu_has_bf16() { return kernels::multiplies_bf16(); }

}  // namespace rondo::nn
