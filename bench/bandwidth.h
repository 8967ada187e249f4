// Reads and copies memory at full speed, to measure the machine's limits.
#pragma once

#include <cstdint>

namespace rondo {

// The sum of all words, so that no read can be optimized away. Each thread always reads the same
// part, as the threads of a network read their share of its weights.
uint64_t read_words(const uint64_t* words, int64_t count);

// Uses non-temporal stores where the CPU has them.
void copy_words(const uint64_t* from, uint64_t* to, int64_t count);

}  // namespace rondo
