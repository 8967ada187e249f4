// Matrix multiplication by our kernels, without gradients: building blocks of differentiable
// functions. Matrices are contiguous, both factors fp32 or both bf16, sums fp32.
#pragma once

#include "rondo/nn/torch.h"

namespace rondo::kernels {
struct Bf16;
}

namespace rondo::nn {

// x [..., k] as rows [m, k].
Tensor as_rows(const Tensor& x, at::ScalarType type);

const kernels::Bf16* bf16_numbers(const Tensor& t);

// a [m, k] · op(b).
struct Factors {
  Tensor a, b;
};

// What else is added to a product, and the type of the result. bf16 results require bf16 factors.
struct ProductResult {
  at::ScalarType type = at::kFloat;
  Tensor bias = {};    // [n], fp32; may be undefined
  Tensor addend = {};  // [m, n], fp32; may be undefined
};

// Σ of a_i · op(b_i) + bias + addend → [m, n]; op is the transpose or the identity.
Tensor product_of_rows(const std::vector<Factors>& factors, bool transpose_b,
                       const ProductResult& result = {});

// Weight gradient aᵀ b → [n, k] fp32 of a [m, n] and b [m, k]; added to `sum` if defined.
Tensor weight_gradient(const Tensor& a, const Tensor& b, const Tensor& sum = {});

// Bias gradient: Σ over rows of x [m, n] → [n] fp32.
Tensor sum_of_rows(const Tensor& x);

// The gradient dyᵀ x of `weight`, which is undefined or a leaf: accumulated directly into
// weight.grad() if allowed (gradients.h), otherwise returned.
Tensor accumulate_gradient(const Tensor& weight, const Tensor& dy, const Tensor& x);
// The same for a gradient that is also needed elsewhere.
Tensor accumulate_gradient(const Tensor& weight, const Tensor& gradient);

}  // namespace rondo::nn
