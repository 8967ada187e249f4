// Shared by tests of kernels: the same computation by our kernels and by plain torch operations.
#pragma once

#include <torch/csrc/autograd/autograd.h>

#include "rondo/nn/compiled.h"
#include "rondo/nn/kernel_choice.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {

// During its lifetime, plain torch operations are used.
class PlainKernels {
 public:
  PlainKernels() : before_(nn::kernels_in_use()) { nn::use_kernels(nn::Kernels::reference); }
  ~PlainKernels() { nn::use_kernels(before_); }
  PlainKernels(const PlainKernels&) = delete;
  PlainKernels& operator=(const PlainKernels&) = delete;

 private:
  nn::Kernels before_;
};

// During its lifetime, torch and our loops use this many threads.
class WithThreads {
 public:
  explicit WithThreads(int threads) : before_(at::get_num_threads()) {
    at::set_num_threads(threads);
  }
  ~WithThreads() { at::set_num_threads(before_); }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;

 private:
  int before_;
};

// The largest difference, relative to the largest value of `want`; near zero, where sums cancel,
// relative to a hundredth of it.
inline double apart(const Tensor& got, const Tensor& want) {
  if (want.numel() == 0) return 0.0;
  const Tensor w = want.detach().to(at::kDouble);
  const double size = w.abs().max().item<double>();
  return (got.detach().to(at::kDouble) - w).abs().max().item<double>() / std::max(size, 1e-2);
}

// x [..., in] through a compiled map.
inline Tensor through(const nn::CompiledLinear& map, const Tensor& x) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = map.w.out;
  const int64_t rows = x.numel() / map.w.in;
  nn::RowBuffer in, out;
  in.resize(rows, map.w.in);
  out.resize(rows, map.w.out);
  const auto tensor = [rows](const nn::Rows& r, int64_t width) {
    return at::from_blob(r.data, {rows, width}, {r.stride, 1}, at::kFloat);
  };
  tensor(in.rows(rows), map.w.in).copy_(x.reshape({rows, map.w.in}));
  map.forward(in.rows(rows), out.rows(rows), kernels::Member());
  return tensor(out.rows(rows), map.w.out).clone().view(sizes);
}

// A result and the gradients of Σ result · (fixed noise) with respect to `variables`.
struct WithGradients {
  Tensor result;
  std::vector<Tensor> gradients;
};

inline WithGradients with_gradients(const Tensor& result, const std::vector<Tensor>& variables) {
  const Tensor direction = noise(result.sizes().vec(), 77, at::kFloat).to(result.scalar_type());
  WithGradients all;
  all.result = result.detach();
  for (const Tensor& g : torch::autograd::grad({result}, variables, {direction})) {
    all.gradients.push_back(g);
  }
  return all;
}

inline void expect_agreement(const WithGradients& got, const WithGradients& want, double tolerance,
                             const std::string& what) {
  EXPECT_LE(apart(got.result, want.result), tolerance) << what;
  ASSERT_EQ(got.gradients.size(), want.gradients.size());
  for (size_t i = 0; i < want.gradients.size(); ++i) {
    EXPECT_LE(apart(got.gradients[i], want.gradients[i]), tolerance) << what << ", gradient " << i;
  }
}

inline void expect_same_bits(const WithGradients& a, const WithGradients& b,
                             const std::string& what) {
  expect_identical(a.result, b.result, what);
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    expect_identical(a.gradients[i], b.gradients[i], what + ", gradient " + std::to_string(i));
  }
}

// A copy that is a separate leaf, of the given type.
inline Tensor leaf(const Tensor& t, at::ScalarType type) {
  return t.detach().to(type).clone().requires_grad_(true);
}

// Central differences in fp32 are inaccurate: hence a wide step and a matching tolerance.
inline GradcheckOptions fp32_gradcheck() {
  GradcheckOptions options;
  options.step = 1e-2;
  options.tolerance = 5e-3;
  return options;
}

}  // namespace rondo::test
