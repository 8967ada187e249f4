// The allocator: blocks are disjoint, aligned and waste little; freed memory is reused, also for
// other sizes; memory stays within its bound however lengths vary; threads, fork, exhaustion. This
// file makes all engine tests use the allocator.
#include "rondo/nn/allocator.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "rondo/base/error.h"
#include "rondo/model/network.h"
#include "rondo/nn/layers.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

const bool allocator_installed = nn::install_allocator();
const Tensor outlives_main = at::ones({300, 300});  // freed after main has ended

constexpr size_t kMiB = size_t{1} << 20;

size_t held(const nn::MemoryUse& use) { return use.in_use + use.cached; }

size_t bound_of(const nn::MemoryUse& use) {
  return use.peak + std::max(64 * kMiB, use.peak / 8) + 16 * kMiB;  // small blocks: 16 MiB
}

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0;
  size_t resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

// Waits for a child to end; true if it ended with exit code 0.
bool ended_well(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(CachingMemory, IsAlignedAndWastesLittle) {
  nn::CachingMemory memory;
  for (size_t bytes = 1; bytes < 300 * kMiB; bytes += 1 + bytes / 7) {
    void* data = memory.allocate(bytes);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0U);
    const auto used = static_cast<double>(memory.use().in_use);
    const double header = bytes <= 65536 ? 64 : 4096;
    EXPECT_GE(used, static_cast<double>(bytes) + 64) << bytes;
    EXPECT_LE(used, std::max(static_cast<double>(bytes + 63), 1.125 * static_cast<double>(bytes)) +
                        header)
        << bytes;
    memory.release(data);
  }
  EXPECT_EQ(memory.use().in_use, 0U);
  memory.give_back();
  EXPECT_EQ(memory.use().cached, 0U);
}

TEST(CachingMemory, UsesTheSamePagesAgainForOtherSizes) {
  nn::CachingMemory memory;
  void* keeps_the_region = memory.allocate(kMiB);
  void* a = memory.allocate(8 * kMiB);
  void* b = memory.allocate(5 * kMiB);
  void* after = memory.allocate(kMiB);
  const size_t before = held(memory.use());
  memory.release(a);
  memory.release(b);  // joined with a
  void* c = memory.allocate(12 * kMiB);
  EXPECT_EQ(c, a);
  memory.release(c);
  void* d = memory.allocate(7 * kMiB);
  void* e = memory.allocate(5 * kMiB);  // the rest of d
  EXPECT_EQ(d, a);
  EXPECT_LT(e, after);
  EXPECT_LE(held(memory.use()), before);
  for (void* data : {keeps_the_region, d, e, after}) memory.release(data);
}

TEST(CachingMemory, GivesBackWhatIsUnusedForLongest) {
  nn::CachingMemory memory;
  std::vector<void*> blocks;
  // Free blocks with used ones between them cannot be joined: larger requests do not fit.
  for (int i = 0; i < 20; ++i) {
    blocks.push_back(memory.allocate(8 * kMiB));
    blocks.push_back(memory.allocate(kMiB));
  }
  const size_t peak = memory.use().peak;
  for (size_t i = 0; i < blocks.size(); i += 2) {
    std::memset(blocks[i], 1, 8 * kMiB);
    memory.release(blocks[i]);
  }
  EXPECT_GE(memory.use().cached, 160 * kMiB);
  const size_t resident = resident_bytes();
  void* large = memory.allocate(100 * kMiB);
  EXPECT_EQ(memory.use().peak, peak);
  EXPECT_LE(held(memory.use()), bound_of(memory.use()));
  EXPECT_LE(resident_bytes(), resident - 32 * kMiB);
  // The pages of the first were released first; a block that still has its pages is preferred.
  const size_t cached = memory.use().cached;
  void* again = memory.allocate(8 * kMiB);
  EXPECT_GT(again, blocks[0]);
  EXPECT_LE(memory.use().cached, cached - 8 * kMiB);
  memory.release(again);
  memory.release(large);
  for (size_t i = 1; i < blocks.size(); i += 2) memory.release(blocks[i]);
}

// Random blocks, each filled with its own byte, which must be unchanged when it is freed.
void hammer(nn::CachingMemory& memory, uint64_t seed, int rounds) {
  std::mt19937_64 draw(seed);
  struct Held {
    unsigned char* data;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Held> blocks;
  const auto drop = [&](size_t i) {
    const Held& block = blocks[i];
    for (const size_t at : {size_t{0}, block.bytes / 2, block.bytes - 1}) {
      ASSERT_EQ(block.data[at], block.mark);
    }
    memory.release(block.data);
    blocks[i] = blocks.back();
    blocks.pop_back();
  };
  for (int i = 0; i < rounds; ++i) {
    if (!blocks.empty() && draw() % 32 < blocks.size()) drop(draw() % blocks.size());
    const size_t bytes = 1 + draw() % (size_t{1} << (draw() % 22));
    auto* data = static_cast<unsigned char*>(memory.allocate(bytes));
    ASSERT_NE(data, nullptr);
    const auto mark = static_cast<unsigned char>(draw());
    std::memset(data, mark, bytes);
    blocks.push_back({data, bytes, mark});
    ASSERT_LE(held(memory.use()), bound_of(memory.use()));
  }
  while (!blocks.empty()) drop(0);
}

TEST(CachingMemory, ServesManyThreads) {
  nn::CachingMemory memory;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] { hammer(memory, t, 3000); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.use().in_use, 0U);
  EXPECT_GT(memory.use().cached, 0U);
  memory.give_back();
  EXPECT_EQ(memory.use().cached, 0U);
}

TEST(CachingMemory, AnswersWithNothingWhenThereIsNoMore) {
  const pid_t child = fork();
  if (child == 0) {
    nn::CachingMemory memory;
    void* first = memory.allocate(100 * kMiB);
    memory.release(first);
    rlimit limit = {};
    limit.rlim_cur = limit.rlim_max = 64 * kMiB;  // less than is mapped: nothing new is mapped
    setrlimit(RLIMIT_AS, &limit);
    bool well = memory.allocate(size_t{1} << 60) == nullptr;
    well = well && memory.allocate(size_t{2} << 30) == nullptr;
    limit.rlim_cur = limit.rlim_max = 0;
    _exit(well ? 0 : 1);
  }
  EXPECT_TRUE(ended_well(child));
}

// ---- as libtorch's allocator ------------------------------------------------------------------

TEST(InstalledAllocator, CountsTensorsAndSaysWhenMemoryIsOut) {
  if (!allocator_installed) GTEST_SKIP() << "not under AddressSanitizer";
  const size_t before = nn::memory_use().in_use;
  Tensor t = at::empty({1000, 1000});
  EXPECT_GE(nn::memory_use().in_use, before + 4000000);
  t = Tensor();
  EXPECT_EQ(nn::memory_use().in_use, before);
  EXPECT_EQ(at::empty({0}).data_ptr(), nullptr);
  try {
    at::empty({int64_t{1} << 55});
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failure);
    EXPECT_NE(error.message().find("a tensor of 144115188075855872 bytes (128 PiB)"),
              std::string::npos)
        << error.message();
  }
}

TEST(InstalledAllocator, SurvivesForkWhileOthersAllocate) {
  if (!allocator_installed) GTEST_SKIP() << "not under AddressSanitizer";
  std::atomic<bool> stop{false};
  std::thread busy([&stop] {
    while (!stop) at::empty({50000});
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a lock that is never released would block forever
      const Tensor t = at::empty({100000});
      _exit(t.numel() == 100000 ? 0 : 1);
    }
    EXPECT_TRUE(ended_well(child));
  }
  stop = true;
  busy.join();
}

// Memory after a warm-up, and the peak afterwards.
struct Growth {
  size_t warm = 0;
  size_t most = 0;
  void see(bool warming, size_t now) {
    (warming ? warm : most) = std::max(warming ? warm : most, now);
  }
};

void expect_bounded(const Growth& growth, const std::string& what) {
  EXPECT_LE(static_cast<double>(growth.most), 1.2 * static_cast<double>(growth.warm)) << what;
}

TEST(InstalledAllocator, FiveThousandLengthsDoNotGrow) {
  if (!allocator_installed) GTEST_SKIP() << "not under AddressSanitizer";
  std::mt19937_64 draw(1);
  std::vector<int64_t> lengths(5000);
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = 1 + static_cast<int64_t>(i) % 1200;
  std::shuffle(lengths.begin(), lengths.end(), draw);
  std::vector<Tensor> alive(100);
  Growth resident;
  Growth of_allocator;
  for (size_t i = 0; i < lengths.size(); ++i) {
    alive[draw() % alive.size()] = at::ones({lengths[i], 256});
    resident.see(i < 1000, resident_bytes());
    of_allocator.see(i < 1000, held(nn::memory_use()));
  }
  expect_bounded(resident, "resident");
  expect_bounded(of_allocator, "held by the allocator");
}

// Two feed-forward levels and a loss over 2 rows of `length` tokens, forward and backward.
void small_step(const std::vector<std::shared_ptr<nn::FeedForward>>& levels, int64_t length) {
  Tensor x = at::ones({2, length, 64});
  for (const auto& level : levels) {
    x = x + level->forward(at::layer_norm(x, {64}), Tensor(), Scope());
    const Tensor scores = at::softmax(at::matmul(x, x.transpose(1, 2)), -1);  // [2, T, T]
    x = x + at::matmul(scores, x);
  }
  sum_cross_entropy(x, at::zeros({2, length}, at::kLong)).sum.backward();
}

TEST(InstalledAllocator, StepsOfVaryingLengthsDoNotGrow) {
  if (!allocator_installed) GTEST_SKIP() << "not under AddressSanitizer";
  nn::FeedForwardShape shape;
  shape.width = 64;
  shape.hidden = 256;
  std::vector<std::shared_ptr<nn::FeedForward>> levels;
  for (int i = 0; i < 2; ++i) {
    levels.push_back(
        std::make_shared<nn::FeedForward>(shape, nn::torch_init(64), nn::torch_init(256)));
    nn::initialize(*levels.back(), 1);
  }
  std::mt19937_64 draw(2);
  Growth resident;
  Growth of_allocator;
  for (int i = 0; i < 150; ++i) {
    const int64_t length = i == 5 ? 1200 : 1 + static_cast<int64_t>(draw() % 1200);
    small_step(levels, length);
    resident.see(i < 12, resident_bytes());
    of_allocator.see(i < 12, held(nn::memory_use()));
  }
  expect_bounded(resident, "resident");
  expect_bounded(of_allocator, "held by the allocator");
}

// A larger block that has its pages is preferred to a fitting one whose pages were released.
TEST(CachingMemory, PrefersPagesThatAreThere) {
  nn::CachingMemory memory;
  void* const fitting = memory.allocate(4 * kMiB);
  void* const between = memory.allocate(kMiB);
  void* const larger = memory.allocate(16 * kMiB);
  void* const after = memory.allocate(kMiB);
  memory.release(fitting);
  memory.give_back();
  memory.release(larger);
  void* const again = memory.allocate(4 * kMiB);
  EXPECT_EQ(again, larger);
  void* const rest = memory.allocate(11 * kMiB);
  EXPECT_GT(rest, again);
  EXPECT_LT(rest, after) << "what was cut off serves others";
  EXPECT_EQ(memory.allocate(4 * kMiB), fitting) << "nothing else is left but new memory";
  for (void* block : {fitting, between, again, rest, after}) memory.release(block);
}

}  // namespace
}  // namespace rondo::test
