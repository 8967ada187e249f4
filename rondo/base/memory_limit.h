// How much memory this process may have, and refusing what cannot fit before it is asked for. The
// machine, its container (cgroup) and the shell (ulimit -v, ulimit -d) each set a limit; an Error
// names the one that is in the way and the bytes.
#pragma once

#include <cstdint>
#include <string>

namespace rondo {

struct MemoryLimit {
  int64_t bytes = INT64_MAX;  // INT64_MAX: unlimited
  std::string name;           // "ulimit -v", "the memory of this machine"
};

// The smallest of all limits.
MemoryLimit memory_limit();

// Error{bad_input} "WHAT: needs N, more than ..." if `bytes` exceed memory_limit().
void require_memory(int64_t bytes, const std::string& what, const std::string& advice);

// a * b * c for sizes that are not negative; INT64_MAX instead of an overflow.
int64_t saturating_product(int64_t a, int64_t b, int64_t c = 1);

// " (ulimit -v: 1.5 GiB)" if the shell has set a limit, else "": for messages about memory or
// threads that could not be had.
std::string named_limits();

// ---- the engine (libtorch and OpenBLAS) with so many threads
//
// OpenBLAS maps a buffer for every thread and, where it cannot, tries again for ever: so whether
// there is room is found out first.

// How many of `wanted` threads have room under ulimit -v and ulimit -d; 0 if not even one.
int64_t threads_with_room(int64_t wanted);

// Error{failure} naming the limit and the need if `threads` have no room.
void require_engine_room(int64_t threads);

// ---- numbers of threads

// More are a slip on any machine; check_threads() knows the present one.
constexpr int64_t kMaxThreads = 1024;

// The cores this process may use; at least 1.
int64_t usable_cores();

// Error{bad_input} if `threads` are far more than the cores: "KEY: expected at most ...".
void check_threads(int64_t threads, const std::string& key);

}  // namespace rondo
