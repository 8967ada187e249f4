// Attention of one query, in fp32 and over rounded keys and values, against plain loops in double.
#include "rondo/kernels/decode_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rondo/kernels/packed.h"
#include "tests/kernels/one_row_test_util.h"

namespace rondo::test {
namespace {

constexpr float kScale = 1.7F;

// softmax((q · k_j + bias_j) · scale) · v over rows [first, first + count) of `stride` numbers.
struct Plain {
  Numbers q, k, v, bias;
  int64_t stride = 0;

  void check(const float* out, int64_t first, int64_t count, bool biased) const {
    std::vector<double> p(static_cast<size_t>(count));
    double sum = 0.0;
    const auto at = [&](size_t j, size_t c) {
      return (static_cast<size_t>(first) + j) * static_cast<size_t>(stride) + c;
    };
    for (size_t j = 0; j < p.size(); ++j) {
      double score = biased ? bias[j] : 0.0;
      for (size_t c = 0; c < q.size(); ++c) score += double{q[c]} * k[at(j, c)];
      p[j] = std::exp(score * kScale);
      sum += p[j];
    }
    for (size_t c = 0; c < q.size(); ++c) {
      double want = 0.0;
      for (size_t j = 0; j < p.size(); ++j) want += p[j] / sum * v[at(j, c)];
      ASSERT_NEAR(out[c], want, 1e-5) << c;
    }
  }
};

Plain random_plain(int64_t places, int64_t width, int64_t stride) {
  return {random_numbers(width, 4), random_numbers(places * stride + 1, 5),
          random_numbers(places * stride + 1, 6), random_numbers(places + 1, 7, 3.0F), stride};
}

void check_exact(int64_t count, int64_t width, bool biased) {
  SCOPED_TRACE(std::to_string(count) + " keys of " + std::to_string(width));
  const Plain plain = random_plain(count, width, width + 3);
  kernels::OneQuery query;
  query.q = plain.q.data();
  query.keys = plain.k.data();
  query.values = plain.v.data();
  query.stride = plain.stride;
  query.count = count;
  query.width = width;
  query.scale = kScale;
  query.bias = biased ? plain.bias.data() : nullptr;
  Numbers scores(static_cast<size_t>(count) + 1);
  Numbers out(static_cast<size_t>(width));
  kernels::attend_one(query, scores.data(), out.data());
  plain.check(out.data(), 0, count, biased);
}

TEST(OneQuery, OverExactKeys) {
  on_every_target([] {
    for (const int64_t count : {0, 1, 2, 3, 7, 33, 256}) {
      for (const int64_t width : {1, 5, 16, 31, 64, 80}) {
        check_exact(count, width, true);
        check_exact(count, width, false);
      }
    }
  });
}

// The cache of one head, filled with the first `places` rows of a plain one, which are rounded too.
class Rounded {
 public:
  Rounded(Plain& plain, int64_t places) {
    const auto width = static_cast<int64_t>(plain.q.size());
    const int64_t size = kernels::rounded_size(places, width);
    const auto take = [&] {
      return static_cast<kernels::Bf16*>(
          arena_.take(static_cast<size_t>(size) * sizeof(kernels::Bf16)));
    };
    head_ = {take(), take(), width};
    for (int64_t j = 0; j < places; ++j) {
      put(plain, j, j);
    }
    for (float& x : plain.k) x = rounded(x);
    for (float& x : plain.v) x = rounded(x);
  }
  void put(const Plain& plain, int64_t row, int64_t place) {
    const int64_t at = row * plain.stride;
    kernels::put_rounded(head_, place, plain.k.data() + at, plain.v.data() + at);
  }
  // Reads keys [first, first + count); what follows them must not be touched.
  Numbers ask(const Plain& plain, int64_t first, int64_t count) const {
    constexpr float kUntouched = 12345.0F;
    kernels::RoundedQuery query;
    Numbers q = plain.q;
    q.push_back(77.0F);  // an odd width is padded to an even one
    query.q = q.data();
    query.head = head_;
    query.first = first;
    query.count = count;
    query.scale = kScale;
    query.bias = plain.bias.data();
    Numbers scores(static_cast<size_t>(count + kernels::kRoundedScores));
    Numbers out(plain.q.size() + 1, kUntouched);
    kernels::attend_one(query, scores.data(), out.data());
    EXPECT_EQ(out.back(), kUntouched);
    return out;
  }
  const kernels::RoundedHead& head() const { return head_; }

 private:
  kernels::PageArena arena_;
  kernels::RoundedHead head_;
};

TEST(OneQuery, OverRoundedKeysFromAnyPlaceOn) {
  on_every_target([] {
    constexpr int64_t kPlaces = 120;
    for (const int64_t width : {1, 5, 16, 31, 64, 80}) {
      Plain plain = random_plain(kPlaces, width, width + 2);
      const Rounded rounded(plain, kPlaces);
      for (const int64_t first : {0, 1, 15, 16, 38}) {
        for (const int64_t count : {0, 1, 2, 16, 33, 82}) {
          SCOPED_TRACE(std::to_string(count) + " keys of " + std::to_string(width) + " from " +
                       std::to_string(first));
          plain.check(rounded.ask(plain, first, count).data(), first, count, true);
        }
      }
    }
  });
}

TEST(OneQuery, RoundedKeysMoveByHalf) {
  constexpr int64_t kHalf = 48;
  Plain plain = random_plain(2 * kHalf, 20, 20);
  const Rounded rounded(plain, 2 * kHalf);
  const Numbers before = rounded.ask(plain, kHalf + 3, 40);
  kernels::move_rounded(rounded.head(), kHalf);
  EXPECT_EQ(rounded.ask(plain, 3, 40), before);
}

}  // namespace
}  // namespace rondo::test
