// Attention where each head has only a few queries, as in a search: they are asked one by one
// (decode_attention.h), because laying out keys for many takes longer than reading them. No torch
// here.
#pragma once

#include "rondo/kernels/attention.h"

namespace rondo::kernels {

// Whether attend_few() takes the problem, and is worth it.
bool few_queries(const AttentionProblem& problem);

// attention_forward() for those, without lse; not to the same bit.
void attend_few(const AttentionProblem& problem, const Sink& out, int threads);

}  // namespace rondo::kernels
