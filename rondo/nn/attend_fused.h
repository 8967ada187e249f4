// Attention by our own kernels (rondo/kernels/attention.h) as one differentiable operation. It
// gives what the plain operations of nn::attend() give, to rounding, and drops the same places for
// the same seed of torch's generator.
#pragma once

#include "rondo/nn/attention.h"

namespace rondo::nn {

// Whether the kernels take such tensors (on the CPU, all fp32 or, perhaps under mixed precision,
// all bf16, no mask of a head's own) and are worth it.
bool fused_attention_fits(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttendOptions& options);

// nn::attend() for what fits, without observers. The result lies as [B, Tq, H, d] in memory, so
// that merging heads copies nothing. Has first derivatives only.
Tensor attend_fused(const Tensor& q, const Tensor& k, const Tensor& v, const AttendOptions& options,
                    bool training);

}  // namespace rondo::nn
