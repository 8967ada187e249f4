// Memory for CPU tensors that is kept and used again, instead of being taken from the system and
// faulted in page by page at every step: 10 to 20 % of a training step. Backed by huge pages where
// the system has them, and bounded: what is held never exceeds the most that was in use at one time
// by more than max(64 MiB, 12.5 %), however the sizes vary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>

namespace rondo::nn {

struct MemoryUse {
  size_t in_use = 0;   // bytes of living blocks, rounding included
  size_t cached = 0;   // bytes of free blocks that hold pages of the system
  size_t peak = 0;     // the most that was in use at one time
  size_t watched = 0;  // the same since the last watch()
};

// Blocks of memory, 64-byte aligned. Up to 64 KiB they come from malloc and are kept in lists by
// size; eight sizes to a doubling, so at most 12.5 % is wasted (below 512 bytes: whole cache
// lines). Larger ones are cut from regions of 1 GiB of address space, the smallest first whose
// pages are still there, and joined with their free neighbors when they come back, so that a step
// of other lengths uses the same pages. Free blocks unused for longest give their pages back when
// the bound is reached. Any thread may call.
class CachingMemory {
 public:
  CachingMemory() = default;
  // Only what is free goes back to the system.
  ~CachingMemory() { give_back(); }
  CachingMemory(const CachingMemory&) = delete;
  CachingMemory& operator=(const CachingMemory&) = delete;

  // Null if the system has no more, even after giving back all that is cached.
  void* allocate(size_t bytes);
  void release(void* data);

  // Returns everything unused to the system.
  void give_back();
  MemoryUse use() const;
  // From now on MemoryUse::watched counts anew.
  void watch();

  // Held around fork(), so that the child does not inherit a lock that nobody will open.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  struct Block;
  struct Header;
  struct Smaller {
    bool operator()(const Block* a, const Block* b) const;
  };
  static constexpr size_t kSmallClasses = 64;

  void* allocate_small(size_t bytes);
  void* allocate_large(size_t bytes);
  void release_small(Header* header);
  void release_large(Block* block);
  Block* take(size_t size);
  bool add_region(size_t size);
  void split(Block* block, size_t size);
  void join(Block* left, Block* right);
  void list_free(Block* block);
  void unlist_free(Block* block);
  void drop_pages(Block* block);
  void keep_within_bound();
  void drop_all();
  size_t bound() const;
  void count_peak();

  mutable std::mutex mutex_;
  std::set<Block*, Smaller> free_;  // of regions, by size and address
  std::array<Header*, kSmallClasses> small_ = {};
  std::array<size_t, kSmallClasses> small_count_ = {};
  uint64_t clock_ = 0;  // counts blocks given back, to find those unused for longest
  MemoryUse use_;
};

// Makes it the memory of all CPU tensors from now on; once, and for good. Does nothing and returns
// false under AddressSanitizer, which must see every block come and go.
bool install_allocator();

// Of the installed allocator; all zero before it is installed.
MemoryUse memory_use();
void watch_memory();

}  // namespace rondo::nn
