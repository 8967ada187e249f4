// Machine limits.
#include "bench/limits.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <sstream>
#include <thread>

#include "bench/bandwidth.h"
#include "rondo/base/text.h"
#include "rondo/kernels/gemm.h"

namespace rondo {
namespace {

constexpr int64_t kCopiedBytes = int64_t{64} << 20;
constexpr size_t kHugePage = size_t{2} << 20;

volatile uint64_t read_sink = 0;  // keeps reads from being optimized away

// Memory on huge pages where available: to measure memory, not page tables.
std::shared_ptr<uint64_t> limit_memory(int64_t bytes) {
  const size_t size = (static_cast<size_t>(bytes) + kHugePage - 1) / kHugePage * kHugePage;
  auto* memory = static_cast<uint64_t*>(std::aligned_alloc(kHugePage, size));
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(memory, size, MADV_HUGEPAGE);
#endif
  // 1.0 in bf16, and close to 1.0 in fp32: products stay finite.
  std::fill_n(reinterpret_cast<uint32_t*>(memory), size / sizeof(uint32_t), 0x3f803f80U);
  return {memory, [](uint64_t* p) { std::free(p); }};
}

struct Side {
  int64_t m, n, k;
};
constexpr Side kProducts[] = {{1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 1024, 1024}};

Limit product_limit(Side s, bool bf16) {
  const auto a = limit_memory(4 * s.m * s.k);
  const auto b = limit_memory(4 * s.k * s.n);
  const auto c = limit_memory(4 * s.m * s.n);
  kernels::Product p;
  p.m = s.m;
  p.n = s.n;
  p.k = s.k;
  Limit limit;
  limit.name = bf16 ? "bf16 matmul" : "fp32 matmul";
  limit.unit = "flop";
  limit.amount =
      2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  limit.run = timed([=] {
    auto* to = reinterpret_cast<float*>(c.get());
    if (bf16) {
      kernels::gemm(p, reinterpret_cast<const uint16_t*>(a.get()),
                    reinterpret_cast<const uint16_t*>(b.get()), to);
    } else {
      kernels::gemm(p, reinterpret_cast<const float*>(a.get()),
                    reinterpret_cast<const float*>(b.get()), to);
    }
  });
  return limit;
}

Limit fastest_product(bool bf16) {
  Limit best;
  double rate = 0;
  for (const Side& s : kProducts) {
    Limit limit = product_limit(s, bf16);
    const double found = best_rate(limit);
    if (found > rate) {
      rate = found;
      best = std::move(limit);
    }
  }
  return best;
}

// Cache size as reported by the system ("2048K"); 0 = unknown.
int64_t cache_bytes(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    int found = 0;
    std::ifstream(folder + "level") >> found;
    std::string type;
    std::ifstream(folder + "type") >> type;
    int64_t size = 0;
    char unit = 0;
    std::ifstream(folder + "size") >> size >> unit;
    if (found == level && type != "Instruction") return unit == 'K' ? size << 10 : size << 20;
  }
  return 0;
}

int64_t available_bytes() {
  return static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

// The text after the colon of the first line of `file` that begins with `key`.
std::string field_of(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (line.rfind(key, 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

}  // namespace

const Limit& matmul_limit(bool bf16) {
  static const Limit fp32_limit = fastest_product(false);
  if (!bf16) return fp32_limit;
  static const Limit bf16_limit = fastest_product(true);
  return bf16_limit;
}

const Limit& copy_limit() {
  static const Limit limit = [] {
    const auto from = limit_memory(kCopiedBytes);
    const auto to = limit_memory(kCopiedBytes);
    const Timed run = timed([=] { copy_words(from.get(), to.get(), kCopiedBytes / 8); });
    return Limit{"copy", "byte", 2.0 * static_cast<double>(kCopiedBytes), run};
  }();
  return limit;
}

Limit read_limit(int64_t bytes) {
  const auto memory = limit_memory(bytes);
  const Timed run = timed([=] { read_sink = read_words(memory.get(), bytes / 8); });
  return {"read " + human_bytes(bytes), "byte", static_cast<double>(bytes / 8 * 8), run};
}

std::vector<MemoryLevel> memory_levels() {
  const auto cores = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const int64_t second = cache_bytes(2);
  const int64_t third = cache_bytes(3);
  std::vector<MemoryLevel> levels;
  if (second > 0) levels.push_back({"L2", cores * second / 2});
  // More than all L2 caches hold, even where that is more than half of L3 or 32 MiB.
  if (third > 0)
    levels.push_back({"L3", std::max(cores * second * 2, std::min(third / 2, int64_t{32} << 20))});
  const int64_t most = available_bytes() / 4;
  const int64_t beyond = std::max(int64_t{256} << 20, 4 * third);
  if (most > 2 * third) levels.push_back({"DRAM", std::min(beyond, most)});
  return levels;
}

double best_rate(const Limit& limit) {
  constexpr int kTries = 3;
  constexpr double kEnough = 0.02;
  double best = limit.run(1);
  const auto times = std::clamp<int64_t>(static_cast<int64_t>(kEnough / best), 1, 10000);
  for (int i = 0; i < kTries; ++i) {
    best = std::min(best, limit.run(times) / static_cast<double>(times));
  }
  return limit.amount / best;
}

MachineDescription describe_machine() {
  MachineDescription m;
  m.cpu = field_of("/proc/cpuinfo", "model name");
  m.cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  m.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::istringstream flags(field_of("/proc/cpuinfo", "flags"));
  const std::vector<std::string> telling = {"avx2",     "avx512f",  "avx512_bf16", "avx512_vnni",
                                            "amx_tile", "amx_bf16", "amx_int8"};
  for (std::string flag; flags >> flag;) {
    if (std::find(telling.begin(), telling.end(), flag) != telling.end()) {
      m.instruction_sets.push_back(flag);
    }
  }
  double load[1] = {0};
  if (getloadavg(load, 1) == 1) m.load = load[0];
  return m;
}

}  // namespace rondo
