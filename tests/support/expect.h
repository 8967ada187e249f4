// Small helpers of the engine tests: catching an Error, comparing tensors.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "rondo/nn/torch.h"
#include "tests/base/base_test_util.h"

namespace rondo::test {

using testing::error_of;

// `action` throws an Error of this code whose text (advice included) contains `part`.
template <class Action>
void expect_error(ExitCode code, const std::string& part, Action action) {
  const Error error = error_of(action);
  EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
  EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
      << "expected to read: " << part << "\ngot: " << error.what();
}

// Same type, shape and bits.
inline void expect_identical(const Tensor& a, const Tensor& b, const std::string& what = {}) {
  ASSERT_TRUE(a.defined() && b.defined()) << what;
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  ASSERT_EQ(a.scalar_type(), b.scalar_type()) << what;
  EXPECT_TRUE(a.equal(b)) << what << ": differ by "
                          << (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

// Same shape, and no difference above `tolerance`.
inline void expect_near(const Tensor& a, const Tensor& b, double tolerance,
                        const std::string& what = {}) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const double apart = (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
  EXPECT_LE(apart, tolerance) << what;  // also fails for NaN
}

}  // namespace rondo::test
