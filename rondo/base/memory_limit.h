// The memory available to this process, and checks that reject what cannot fit before allocating.
// The machine, the container (cgroup) and the shell (ulimit -v, ulimit -d) each set a limit; errors
// name the limit that applies and its size.
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

// Throws Error{bad_input} "WHAT: needs N, more than ..." if `bytes` exceeds memory_limit().
void require_memory(int64_t bytes, const std::string& what, const std::string& advice);

// a * b * c for non-negative sizes; saturates at INT64_MAX.
int64_t saturating_product(int64_t a, int64_t b, int64_t c = 1);

// " (ulimit -v: 1.5 GiB)" if the shell sets a limit, otherwise "". For messages about failed
// allocations and thread creation.
std::string named_limits();

// ---- memory of the engine (libtorch and OpenBLAS) by number of threads
//
// OpenBLAS maps a buffer per thread and retries forever if that fails, so we check for room first.

// How many of `wanted` threads fit under ulimit -v and ulimit -d; 0 if not even one.
int64_t threads_with_room(int64_t wanted);

// Throws Error{failure} with the limit and the required size if `threads` do not fit.
void require_engine_room(int64_t threads);

// ---- thread counts

// More is a mistake on any machine; check_threads() applies the limit of this one.
constexpr int64_t kMaxThreads = 1024;

// The cores this process may use; at least 1.
int64_t usable_cores();

// Throws Error{bad_input} "KEY: expected at most ..." if `threads` far exceeds the cores.
void check_threads(int64_t threads, const std::string& key);

}  // namespace rondo
