// A few queries asked one by one against the kernel that takes them in tiles.
#include "rondo/kernels/few_queries.h"

#include <gtest/gtest.h>

#include "tests/kernels/one_row_test_util.h"

namespace rondo::test {
namespace {

constexpr int64_t kBatch = 3;
constexpr int64_t kHeads = 2;

// Arrays that lie as [B, T, H, d].
struct Arrays {
  Numbers q, k, v, factor;
  std::vector<uint8_t> visible;  // [B, Tk]
  kernels::AttentionProblem problem;
};

kernels::Strides strides(int64_t tokens, int64_t width) {
  return {tokens * kHeads * width, width, kHeads * width};
}

Arrays random_arrays(int64_t queries, int64_t keys, int64_t width, bool masked) {
  Arrays a;
  a.q = random_numbers(kBatch * queries * kHeads * width, 41);
  a.k = random_numbers(kBatch * keys * kHeads * width, 42);
  a.v = random_numbers(kBatch * keys * kHeads * width, 43);
  a.factor = {0.7F, 0.3F};
  for (int64_t b = 0; b < kBatch; ++b) {  // all, some, and none
    for (int64_t j = 0; j < keys; ++j) a.visible.push_back(b == 0 || (b == 1 && j % 3 != 1));
  }
  kernels::AttentionProblem& p = a.problem;
  p.batch = kBatch;
  p.heads = kHeads;
  p.queries = queries;
  p.keys = keys;
  p.width = width;
  p.q = {a.q.data(), strides(queries, width)};
  p.k = {a.k.data(), strides(keys, width)};
  p.v = {a.v.data(), strides(keys, width)};
  p.factor = a.factor.data();
  if (masked) {
    p.visible = a.visible.data();
    p.visible_batch = keys;
  }
  return a;
}

TEST(FewQueries, AgreeWithTiles) {
  for (const bool masked : {false, true}) {
    for (const int64_t queries : {1, 5, 7}) {
      for (const int64_t keys : {1, 2, 31, 64}) {
        for (const int64_t width : {5, 16, 64}) {
          SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys of " +
                       std::to_string(width));
          const Arrays a = random_arrays(queries, keys, width, masked);
          ASSERT_TRUE(kernels::few_queries(a.problem));
          Numbers got(a.q.size());
          Numbers want(a.q.size());
          Numbers lse(static_cast<size_t>(kBatch * kHeads * queries));
          kernels::attend_few(a.problem, {got.data(), strides(queries, width)}, 2);
          kernels::attention_forward(a.problem, {want.data(), strides(queries, width)}, lse.data(),
                                     2);
          for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-6) << i;
        }
      }
    }
  }
}

TEST(FewQueries, LeaveOtherProblemsAlone) {
  EXPECT_FALSE(kernels::few_queries(random_arrays(8, 5, 4, false).problem));
  Arrays biased = random_arrays(2, 5, 4, false);
  const Numbers bias(kHeads * 2 * 5);
  biased.problem.bias = bias.data();
  EXPECT_FALSE(kernels::few_queries(biased.problem));
  Arrays negative = random_arrays(2, 5, 4, true);
  negative.factor[1] = -1.0F;
  EXPECT_FALSE(kernels::few_queries(negative.problem));
  Arrays rounded_numbers = random_arrays(2, 5, 4, false);
  rounded_numbers.problem.element = kernels::Element::bf16;
  EXPECT_FALSE(kernels::few_queries(rounded_numbers.problem));
}

}  // namespace
}  // namespace rondo::test
