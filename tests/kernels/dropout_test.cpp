// Dropout by hash: the right share is dropped, the rest scaled; the same mask forward and backward,
// whole or in pieces, with any number of threads; different for every seed and position.
#include "rondo/kernels/dropout.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "rondo/nn/ops.h"
#include "tests/support/expect.h"

namespace rondo::test {
namespace {

std::vector<float> dropped(int64_t count, double rate, uint64_t seed, int64_t first = 0) {
  const std::vector<float> x(static_cast<size_t>(count), 1.0F);
  std::vector<float> y(x.size());
  kernels::dropout(x.data(), y.data(), first, count, rate, seed);
  return y;
}

double share_kept(const std::vector<float>& y) {
  double kept = 0;
  for (const float v : y) kept += v != 0.0F;
  return kept / static_cast<double>(y.size());
}

TEST(HashedDropout, DropsTheShareAskedForAndScalesTheRest) {
  for (const double rate : {0.05, 0.1, 0.5, 0.9}) {
    const std::vector<float> y = dropped(1 << 21, rate, 7);
    const double deviation = std::sqrt(rate * (1 - rate) / static_cast<double>(y.size()));
    EXPECT_NEAR(share_kept(y), 1 - rate, 5 * deviation) << rate;
    for (const float v : y) {
      ASSERT_TRUE(v == 0.0F || v == static_cast<float>(1.0 / (1.0 - rate))) << v;
    }
  }
}

TEST(HashedDropout, WholeEqualsPieces) {
  constexpr int64_t count = (1 << 20) + 5000;  // beyond one stretch of positions
  const std::vector<float> whole = dropped(count, 0.3, 11);
  for (const int64_t cut : {1, 17, 4096, 1 << 20, (1 << 20) + 1}) {
    std::vector<float> pieces = dropped(cut, 0.3, 11);
    const std::vector<float> rest = dropped(count - cut, 0.3, 11, cut);
    pieces.insert(pieces.end(), rest.begin(), rest.end());
    EXPECT_EQ(pieces, whole) << cut;
  }
}

TEST(HashedDropout, SeedsStretchesAndNeighborsAreIndependent) {
  constexpr int64_t count = 1 << 20;
  const auto agreement = [](const std::vector<float>& a, const std::vector<float>& b) {
    double same = 0;
    for (size_t i = 0; i < a.size(); ++i) same += (a[i] != 0.0F) == (b[i] != 0.0F);
    return same / static_cast<double>(a.size());
  };
  const std::vector<float> y = dropped(count, 0.5, 1);
  EXPECT_NEAR(agreement(y, dropped(count, 0.5, 2)), 0.5, 0.005) << "another seed";
  EXPECT_NEAR(agreement(y, dropped(count, 0.5, 1, count)), 0.5, 0.005) << "the next stretch";
  for (const size_t lag : {1, 2, 64, 256, 1024}) {
    const std::vector<float> later(y.begin() + static_cast<int64_t>(lag), y.end());
    const std::vector<float> before(y.begin(), y.end() - static_cast<int64_t>(lag));
    EXPECT_NEAR(agreement(before, later), 0.5, 0.005) << "lag " << lag;
  }
}

TEST(HashedDropout, TheGradientSeesTheSameMask) {
  at::manual_seed(5);
  const Tensor x = at::randn({64, 300}).requires_grad_();
  const Tensor y = nn::dropout(x, 0.4, true);
  const Tensor weights = at::randn({64, 300});
  (y * weights).sum().backward();
  const Tensor mask = y.detach() / x.detach();  // 0 or 1 / 0.6
  expect_near(x.grad(), mask * weights, 1e-5);
  EXPECT_GT(mask.eq(0).sum().item<int64_t>(), 0);
}

TEST(HashedDropout, ThreadsDoNotMatterAndTorchsSeedDoes) {
  const int before = at::get_num_threads();
  const auto draw = [](int threads, uint64_t seed) {
    at::set_num_threads(threads);
    at::manual_seed(seed);
    return nn::dropout(at::ones({300, 1000}), 0.2, true);
  };
  const Tensor one = draw(1, 3);
  expect_identical(draw(2, 3), one);
  EXPECT_FALSE(draw(2, 4).equal(one));
  at::set_num_threads(before);
}

}  // namespace
}  // namespace rondo::test
