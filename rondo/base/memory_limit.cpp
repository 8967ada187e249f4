// Memory limits of the machine, cgroups and the shell.
#include "rondo/base/memory_limit.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Memory of the engine, measured with Debian 12's libtorch and OpenBLAS (VmPeak minus buffers and
// stacks: 428 MiB, of which RONDO_FAST_START saves half), plus headroom for small models and for
// what the allocator leaves to others (nn/allocator.cpp). ulimit -d counts only writable memory.
constexpr int64_t kEngineAddresses = 600 * kMiB;
constexpr int64_t kEngineData = 192 * kMiB;
// OpenBLAS's buffer (128 MiB) plus a stack (8 MiB). One more than threads: callers have their own.
constexpr int64_t kPerThread = 136 * kMiB;

// Twice the cores can hide a slow disk; many times as many is a mistake.
constexpr int64_t kThreadsPerCore = 4;
constexpr int64_t kAlwaysAllowedThreads = 16;

struct ShellLimit {
  int resource;
  const char* name;
  int64_t engine;  // the engine's share, not counting threads
};
constexpr ShellLimit kShellLimits[] = {{RLIMIT_AS, "ulimit -v", kEngineAddresses},
                                       {RLIMIT_DATA, "ulimit -d", kEngineData}};

int64_t shell_limit(int resource) {
  struct rlimit limit {};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_cur > static_cast<rlim_t>(INT64_MAX)) {  // including RLIM_INFINITY
    return INT64_MAX;
  }
  return static_cast<int64_t>(limit.rlim_cur);
}

// The number in a cgroup file; INT64_MAX if there is none ("max", or no such file).
int64_t cgroup_number(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value && value > 0 ? value : INT64_MAX;
}

// The limit of this process's cgroup (v2 or v1).
int64_t cgroup_limit() {
  int64_t least = std::min(cgroup_number("/sys/fs/cgroup/memory.max"),
                           cgroup_number("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  std::ifstream groups("/proc/self/cgroup");
  std::string line;  // "0::/path", or "4:memory:/path"
  while (std::getline(groups, line)) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() != 3) continue;
    if (parts[1].empty()) {
      least = std::min(least, cgroup_number("/sys/fs/cgroup" + parts[2] + "/memory.max"));
    } else if (parts[1] == "memory") {
      least = std::min(
          least, cgroup_number("/sys/fs/cgroup/memory" + parts[2] + "/memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace

MemoryLimit memory_limit() {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  MemoryLimit least{pages > 0 && page > 0 ? pages * page : INT64_MAX, "the memory of this machine"};
  const auto consider = [&](int64_t bytes, const char* name) {
    if (bytes < least.bytes) least = {bytes, name};
  };
  consider(cgroup_limit(), "the memory limit of this container (cgroup)");
  for (const ShellLimit& limit : kShellLimits) consider(shell_limit(limit.resource), limit.name);
  return least;
}

void require_memory(int64_t bytes, const std::string& what, const std::string& advice) {
  const MemoryLimit limit = memory_limit();
  if (bytes <= limit.bytes) return;
  throw Error(ExitCode::bad_input,
              fmt::format("{}: needs {}{} of memory, more than {} ({})", what,
                          bytes == INT64_MAX ? "more than " : "", human_bytes(bytes), limit.name,
                          human_bytes(limit.bytes)),
              advice);
}

int64_t saturating_product(int64_t a, int64_t b, int64_t c) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || __builtin_mul_overflow(product, c, &product)) {
    return INT64_MAX;
  }
  return product;
}

std::string named_limits() {
  std::vector<std::string> named;
  for (const ShellLimit& limit : kShellLimits) {
    const int64_t bytes = shell_limit(limit.resource);
    if (bytes != INT64_MAX) named.push_back(fmt::format("{}: {}", limit.name, human_bytes(bytes)));
  }
  return named.empty() ? "" : " (" + join(named, ", ") + ")";
}

int64_t threads_with_room(int64_t wanted) {
  int64_t most = wanted;
  for (const ShellLimit& limit : kShellLimits) {
    const int64_t bytes = shell_limit(limit.resource);
    if (bytes == INT64_MAX) continue;
    most = std::min(most, (bytes - limit.engine) / kPerThread - 1);
  }
  return std::max<int64_t>(most, 0);
}

void require_engine_room(int64_t threads) {
  if (threads_with_room(threads) == threads) return;
  for (const ShellLimit& limit : kShellLimits) {
    const int64_t bytes = shell_limit(limit.resource);
    const int64_t need = limit.engine + (threads + 1) * kPerThread;
    if (bytes >= need) continue;
    throw Error(
        ExitCode::failure,
        fmt::format("{}: the limit is {}, but computing with {} thread{} needs {}", limit.name,
                    human_bytes(bytes), threads, threads == 1 ? "" : "s", human_bytes(need)),
        fmt::format("raise it: {} unlimited{}", limit.name,
                    threads > 1 ? ", or use fewer threads" : ""));
  }
}

int64_t usable_cores() {
  return std::max<int64_t>(1, static_cast<int64_t>(std::thread::hardware_concurrency()));
}

void check_threads(int64_t threads, const std::string& key) {
  const int64_t most = std::max(kAlwaysAllowedThreads, kThreadsPerCore * usable_cores());
  if (threads <= most) return;
  throw Error(ExitCode::bad_input,
              fmt::format("{}: expected at most {} on a machine with {} cores, got {}", key, most,
                          usable_cores(), threads),
              "0 means one per core");
}

}  // namespace rondo
