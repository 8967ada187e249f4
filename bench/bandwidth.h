// Reading and copying memory as fast as this machine can, to know its limits.
#pragma once

#include <cstdint>

namespace rondo {

// The sum of all words, so that none can be left unread. Each thread reads its own part, always the
// same one, as the threads of a network read their share of its weights.
uint64_t read_words(const uint64_t* words, int64_t count);

// Copies past the caches where the CPU has stores for that.
void copy_words(const uint64_t* from, uint64_t* to, int64_t count);

}  // namespace rondo
