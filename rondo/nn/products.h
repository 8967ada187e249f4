// Products of matrices by our kernels, without gradients: what functions that have some are made
// of. Matrices are contiguous, the factors of a product both fp32 or both bf16, its sums fp32.
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

// What else is in a product, and what comes of it. bf16 results are for bf16 factors.
struct ProductResult {
  at::ScalarType type = at::kFloat;
  Tensor bias = {};    // [n], fp32; may be undefined
  Tensor addend = {};  // [m, n], fp32; may be undefined
};

// Σ of a_i · op(b_i) + bias + addend → [m, n]; op is the transpose or nothing.
Tensor product_of_rows(const std::vector<Factors>& factors, bool transpose_b,
                       const ProductResult& result = {});

// aᵀ b → [n, k] fp32 of a [m, n] and b [m, k], which is what the gradient of a weight is; added to
// `sum` if that is defined.
Tensor weight_gradient(const Tensor& a, const Tensor& b, const Tensor& sum = {});

// Σ over rows of x [m, n] → [n] fp32, which is what the gradient of a bias is.
Tensor sum_of_rows(const Tensor& x);

// The gradient dyᵀ x of `weight`, which is undefined or a leaf: added to where it belongs, if it
// may go there by itself (gradients.h), else returned.
Tensor accumulate_gradient(const Tensor& weight, const Tensor& dy, const Tensor& x);
// The same for a gradient that is needed elsewhere too.
Tensor accumulate_gradient(const Tensor& weight, const Tensor& gradient);

}  // namespace rondo::nn
