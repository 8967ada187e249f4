// Groups of processes, here threads that each join as one rank.
#include "rondo/train/process_group.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "rondo/base/error.h"
#include "rondo/base/random.h"
#include "tests/train/group_test_util.h"

namespace rondo {
namespace {

using testing::expect_well;
using testing::in_group;

std::vector<float> numbers_of(int64_t rank, size_t count) {
  CounterRandom random(7, "group", static_cast<uint64_t>(rank));
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(random.normal());
  return values;
}

TEST(ProcessGroup, SumsAreRightAndTheSameBitsEverywhere) {
  for (const int64_t size : {2, 3, 4}) {
    constexpr size_t kCount = 70001;
    std::vector<std::vector<float>> results(static_cast<size_t>(size));
    std::vector<double> small(static_cast<size_t>(size));
    expect_well(in_group(size, [&](ProcessGroup& group) {
      std::vector<float> values = numbers_of(group.rank(), kCount);
      group.all_reduce(values.data(), kCount);
      results[static_cast<size_t>(group.rank())] = values;
      double one = 1.0 / static_cast<double>(group.rank() + 3);
      group.all_reduce(&one, 1);
      small[static_cast<size_t>(group.rank())] = one;
    }));
    std::vector<double> expected(kCount, 0.0);
    double expected_small = 0;
    for (int64_t rank = 0; rank < size; ++rank) {
      const std::vector<float> values = numbers_of(rank, kCount);
      for (size_t i = 0; i < kCount; ++i) expected[i] += values[i];
      expected_small += 1.0 / static_cast<double>(rank + 3);
    }
    for (size_t i = 0; i < kCount; ++i) ASSERT_NEAR(results[0][i], expected[i], 2e-6);
    for (int64_t rank = 0; rank < size; ++rank) {
      EXPECT_EQ(results[static_cast<size_t>(rank)], results[0]);
      EXPECT_NEAR(small[static_cast<size_t>(rank)], expected_small, 1e-15);
    }
  }
}

TEST(ProcessGroup, SumsInTheBackgroundRunBesideOthers) {
  constexpr size_t kCount = 300007;
  expect_well(in_group(3, [](ProcessGroup& group) {
    const auto whole = [&](std::vector<float> values) {
      group.all_reduce(values.data(), static_cast<int64_t>(values.size()));
      return values;
    };
    std::vector<float> a = numbers_of(group.rank(), kCount);
    std::vector<float> b = numbers_of(group.rank() + 10, kCount / 3);
    const std::vector<float> sum_a = whole(a);
    const std::vector<float> sum_b = whole(b);
    for (int round = 0; round < 20; ++round) {
      std::vector<float> x = a;
      std::vector<float> y = b;
      std::future<void> started = group.start_all_reduce(x.data(), kCount, {});
      started = group.start_all_reduce(y.data(), kCount / 3, std::move(started));
      ASSERT_EQ(whole(a), sum_a);
      group.wait(started);
      ASSERT_EQ(x, sum_a);
      ASSERT_EQ(y, sum_b);
    }
  }));
}

TEST(ProcessGroup, ALostProcessEndsASumInTheBackground) {
  const auto errors = in_group(2, [](ProcessGroup& group) {
    if (group.rank() == 1) {
      group.abort("out of memory");
      throw Error(ExitCode::failure, "out of memory");
    }
    std::vector<float> numbers(1000);
    std::future<void> started = group.start_all_reduce(numbers.data(), 1000, {});
    group.wait(started);
  });
  EXPECT_EQ(errors[0].rfind("7: ", 0), 0U) << errors[0];
  EXPECT_NE(errors[0].find("rank 1 ended: out of memory"), std::string::npos) << errors[0];
}

TEST(ProcessGroup, Bf16RoundsToEightBits) {
  expect_well(in_group(3, [](ProcessGroup& group) {
    const auto narrow = [](float x) {
      uint32_t bits = 0;
      std::memcpy(&bits, &x, 4);
      return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    };
    std::vector<uint16_t> wire;
    for (const float x : numbers_of(group.rank(), 1000)) wire.push_back(narrow(x));
    group.all_reduce_bf16(wire.data(), 1000);
    std::vector<double> expected(1000, 0.0);
    double size = 0;
    for (int64_t rank = 0; rank < 3; ++rank) {
      const std::vector<float> values = numbers_of(rank, 1000);
      for (size_t i = 0; i < 1000; ++i) expected[i] += values[i];
      for (const float v : values) size = std::max(size, std::abs(double{v}));
    }
    for (size_t i = 0; i < 1000; ++i) {
      const uint32_t bits = uint32_t{wire[i]} << 16;
      float got = 0;
      std::memcpy(&got, &bits, 4);
      // Three inputs and two sums, each rounded by at most 2^-9 of a value of at most 3 · size.
      ASSERT_NEAR(got, expected[i], 5 * 3 * size / 512);
    }
  }));
}

TEST(ProcessGroup, CopiesAndTexts) {
  expect_well(in_group(4, [](ProcessGroup& group) {
    std::string text = group.rank() == 0 ? "from the first" : "..............";
    group.broadcast(text.data(), static_cast<int64_t>(text.size()));
    EXPECT_EQ(text, "from the first");
    const auto all = group.all_gather(std::string(static_cast<size_t>(group.rank()), 'x'));
    ASSERT_EQ(all.size(), 4U);
    for (size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(all[rank], std::string(rank, 'x'));
    std::vector<float> parts(6, -1.0F);  // 1, 0, 2 and 3 numbers
    const std::vector<int64_t> counts = {1, 0, 2, 3};
    int64_t at = 0;
    for (int64_t rank = 0; rank < group.rank(); ++rank) at += counts[static_cast<size_t>(rank)];
    for (int64_t i = 0; i < counts[static_cast<size_t>(group.rank())]; ++i) {
      parts[static_cast<size_t>(at + i)] = static_cast<float>(at + i);
    }
    group.all_gather(parts.data(), counts);
    EXPECT_EQ(parts, (std::vector<float>{0, 1, 2, 3, 4, 5}));
    int64_t value = group.rank();
    if (group.rank() > 0) group.send(&value, sizeof(value), 0);
    for (int64_t rank = 1; group.rank() == 0 && rank < 4; ++rank) {
      group.receive(&value, sizeof(value), rank);
      EXPECT_EQ(value, rank);
    }
    group.wait_patiently();
  }));
}

TEST(ProcessGroup, DifferencesAreRefusedByName) {
  const auto errors = in_group(3, [](ProcessGroup& group) {
    group.require_same("recipe", "a = 1\n");
    group.require_same("recipe", group.rank() == 2 ? "a = 1\nb = 3\n" : "a = 1\nb = 2\n");
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(
        error.rfind("3: rank 2 differs from rank 0 in its recipe: expected b = 2, got b = 3", 0),
        0U)
        << error;
  }
}

TEST(ProcessGroup, ALostProcessEndsTheOthersWithItsReason) {
  const auto errors = in_group(3, [](ProcessGroup& group) {
    if (group.rank() == 1) {
      group.abort("the disk is full");
      throw Error(ExitCode::io, "the disk is full");
    }
    float one = 1;
    group.all_reduce(&one, 1);
  });
  EXPECT_EQ(errors[1].rfind("4: ", 0), 0U);
  for (const size_t rank : {0U, 2U}) {
    EXPECT_EQ(errors[rank].rfind("7: ", 0), 0U) << errors[rank];
    EXPECT_NE(errors[rank].find("rank 1 ended: the disk is full"), std::string::npos)
        << errors[rank];
  }
}

TEST(ProcessGroup, AnAddressOpenToOthersNeedsASecret) {
  GroupPlace place;
  place.shard = {0, 2};
  place.local_size = 2;
  place.address = "0.0.0.0";
  place.port = 1;
  try {
    const ProcessGroup group(place);
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

}  // namespace
}  // namespace rondo
