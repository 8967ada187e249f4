// Peak performance of this machine: fp32 and bf16 matmul, memory reads and copies. A limit is a
// known amount of work; timed alongside a network, it is also the canary that shows whether the
// machine was quiet. No torch dependency.
#pragma once

#include "bench/measure.h"

namespace rondo {

struct Limit {
  std::string name;   // "fp32 matmul", "read 12 MiB"
  std::string unit;   // "flop" or "byte"
  double amount = 0;  // per execution
  Timed run;
};

// The fastest of several large matmuls, determined once. `bf16`: bf16 factors, fp32 sums.
const Limit& matmul_limit(bool bf16);
// Reads 64 MiB and writes 64 MiB; the amount is the total.
const Limit& copy_limit();
// Repeatedly reads a working set of this many bytes with all threads.
Limit read_limit(int64_t bytes);

// Working sets that represent a level of memory: half its size, or for DRAM far more than the
// caches.
struct MemoryLevel {
  std::string name;  // "L2", "L3", "DRAM"
  int64_t bytes = 0;
};
std::vector<MemoryLevel> memory_levels();

// Amount per second of the fastest of a few executions.
double best_rate(const Limit& limit);

// The CPU as the system describes it, and the current load.
struct MachineDescription {
  std::string cpu;
  int64_t cores = 0;
  int64_t memory_bytes = 0;
  std::vector<std::string> instruction_sets;  // those relevant here
  double load = 0;                            // average over the last minute
};
MachineDescription describe_machine();

}  // namespace rondo
