// The largest values of a row against sorting all of it; log Σ exp against a sum in double.
#include "rondo/kernels/best_of_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/kernels/one_row_test_util.h"

namespace rondo::test {
namespace {

TEST(BestOfRow, EqualsSorting) {
  for (const int64_t count : {1, 2, 10, 63, 64, 65, 1000, 4096}) {
    for (const int64_t best : {1, 2, 10}) {
      Numbers x = random_numbers(count, static_cast<uint32_t>(count), 5.0F);
      for (size_t i = 3; i < x.size(); i += 7) x[i] = x[i - 3];  // ties
      std::vector<int64_t> order(x.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return x[static_cast<size_t>(a)] > x[static_cast<size_t>(b)];
      });
      Numbers values(static_cast<size_t>(best));
      std::vector<int64_t> places(static_cast<size_t>(best));
      kernels::best_of_row(x.data(), count, best, values.data(), places.data());
      for (size_t i = 0; i < values.size(); ++i) {
        if (i < order.size()) {
          EXPECT_EQ(places[i], order[i]) << i << " of " << count;
          EXPECT_EQ(values[i], x[static_cast<size_t>(order[i])]);
        } else {
          EXPECT_EQ(values[i], -INFINITY);
        }
      }
    }
  }
}

TEST(BestOfRow, SkipsWhatIsBannedOrNoNumber) {
  const Numbers x = {-INFINITY, NAN, 2.0F, -INFINITY, 1.0F};
  Numbers values(3);
  std::vector<int64_t> places(3);
  kernels::best_of_row(x.data(), 5, 3, values.data(), places.data());
  EXPECT_EQ(values, (Numbers{2.0F, 1.0F, -INFINITY}));
  EXPECT_EQ(places, (std::vector<int64_t>{2, 4, 0}));
}

TEST(BestOfRow, TheFirstOfTheLargest) {
  for (const int64_t count : {1, 2, 15, 16, 17, 100, 4096}) {
    Numbers x = random_numbers(count, 12);
    const auto want = std::max_element(x.begin(), x.end()) - x.begin();
    const auto first = [&] {
      float value = 0.0F;
      int64_t place = -1;
      kernels::best_of_row(x.data(), count, 1, &value, &place);
      return place;
    };
    EXPECT_EQ(first(), want);
    x.back() = x[static_cast<size_t>(want)];
    EXPECT_EQ(first(), want);
  }
}

TEST(LogSumExp, EqualsASumInDouble) {
  for (const int64_t count : {1, 5, 100, 4099}) {
    Numbers x = random_numbers(count, 9, 40.0F);
    if (count > 1) x[1] = -INFINITY;
    double sum = 0.0;
    for (const float v : x) sum += std::exp(double{v});
    EXPECT_NEAR(kernels::log_sum_exp(x.data(), count), std::log(sum), 1e-5) << count;
  }
  const Numbers none(3, -INFINITY);
  EXPECT_EQ(kernels::log_sum_exp(none.data(), 3), -INFINITY);
}

}  // namespace
}  // namespace rondo::test
