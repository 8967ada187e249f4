// Attention rollout up to any level of a pyramid, against sums over paths written as loops.
#include "rondo/study/rollout.h"

#include <gtest/gtest.h>

namespace rondo::study {
namespace {

// Rows that sum to 1.
Tensor drawn_attention(int64_t tokens) {
  return at::rand({tokens, tokens}, at::kDouble).softmax(1);
}

// One level, backward: half stays, half goes where the token attends to.
std::vector<double> back_one_level(const std::vector<double>& share, const Tensor& attention) {
  const auto p = attention.accessor<double, 2>();
  std::vector<double> before(share.size(), 0.0);
  for (size_t i = 0; i < share.size(); ++i) {
    before[i] += 0.5 * share[i];
    for (size_t j = 0; j < share.size(); ++j) {
      before[j] += 0.5 * share[i] * p[static_cast<int64_t>(i)][static_cast<int64_t>(j)];
    }
  }
  return before;
}

// Each patch of the coarse 2 x 2 grid to the patches of the 4 x 4 grid that its convolution sees.
std::vector<double> back_through_pooling(const std::vector<double>& coarse) {
  std::vector<double> fine(16, 0.0);
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 2; ++x) {
      double total = 0;
      for (const bool adds : {false, true}) {
        for (int v = std::max(0, 2 * y - 1); v <= 2 * y + 1; ++v) {
          for (int u = std::max(0, 2 * x - 1); u <= 2 * x + 1; ++u) {
            const double weight = (v == 2 * y ? 2.0 : 1.0) * (u == 2 * x ? 2.0 : 1.0);
            if (adds) fine[4 * v + u] += coarse[2 * y + x] * weight / total;
            if (!adds) total += weight;
          }
        }
      }
    }
  }
  return fine;
}

void expect_map(const Tensor& map, const std::vector<double>& wanted) {
  ASSERT_EQ(map.sizes(), (at::IntArrayRef{4, 4}));
  const Tensor flat = map.flatten();
  for (int64_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(flat[i].item<double>(), wanted[static_cast<size_t>(i)], 1e-12) << i;
  }
}

TEST(Rollout, UntilALevelCountsThoseBelowAndEarlierStages) {
  at::manual_seed(3);
  const std::vector<StackAttention> stacks = {{{drawn_attention(16), drawn_attention(16)}, 4},
                                              {{drawn_attention(4), drawn_attention(4)}, 2}};
  expect_map(rollout_until(stacks, 0, 0),
             back_one_level(std::vector<double>(16, 1.0 / 16), stacks[0].levels[0]));
  for (const size_t level : {0, 1}) {
    std::vector<double> share(4, 0.25);
    for (size_t i = level + 1; i-- > 0;) share = back_one_level(share, stacks[1].levels[i]);
    share = back_through_pooling(share);
    for (size_t i = 2; i-- > 0;) share = back_one_level(share, stacks[0].levels[i]);
    expect_map(rollout_until(stacks, 1, level), share);
  }
}

}  // namespace
}  // namespace rondo::study
