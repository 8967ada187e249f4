// Attention by our own kernels (rondo/kernels/attention.h) as one differentiable operation. Equals
// the plain operations of nn::attend() up to rounding, and drops the same positions for the same
// seed of torch's generator.
#pragma once

#include "rondo/nn/attention.h"

namespace rondo::nn {

// Whether the kernels support these tensors (on the CPU, all fp32 or, possibly under mixed
// precision, all bf16, no per-head mask) and pay off.
bool fused_attention_fits(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttendOptions& options);

// nn::attend() for tensors that fit, without observers. The result is stored as [B, Tq, H, d], so
// merging heads copies nothing. First derivatives only.
Tensor attend_fused(const Tensor& q, const Tensor& k, const Tensor& v, const AttendOptions& options,
                    bool training);

}  // namespace rondo::nn
