// What this machine can do at most: matrix products in fp32 and bf16, reading and copying memory.
// A limit is work whose amount is known; timed beside a network it is also the canary that tells
// whether the machine was quiet. No torch here.
#pragma once

#include "bench/measure.h"

namespace rondo {

struct Limit {
  std::string name;   // "fp32 matmul", "read 12 MiB"
  std::string unit;   // "flop" or "byte"
  double amount = 0;  // of one execution
  Timed run;
};

// The fastest of several large products, found once. `bf16`: numbers rounded to bf16, summed in
// fp32.
const Limit& matmul_limit(bool bf16);
// Reading and writing 64 MiB each; the amount is both together.
const Limit& copy_limit();
// Reading a working set of so many bytes again and again, by all threads.
Limit read_limit(int64_t bytes);

// Working sets that stand for a level of memory: half of it, or for DRAM far more than the caches.
struct MemoryLevel {
  std::string name;  // "L2", "L3", "DRAM"
  int64_t bytes = 0;
};
std::vector<MemoryLevel> memory_levels();

// Amount per second of the fastest of a few executions.
double best_rate(const Limit& limit);

// One line about the CPU, as the system describes it, and how many run now.
struct MachineDescription {
  std::string cpu;
  int64_t cores = 0;
  int64_t memory_bytes = 0;
  std::vector<std::string> instruction_sets;  // of those that matter here
  double load = 0;                            // mean number of threads that ran in the last minute
};
MachineDescription describe_machine();

}  // namespace rondo
