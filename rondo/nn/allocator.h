// Caches memory of CPU tensors instead of returning it to the system and faulting it in again page
// by page at every step: 10 to 20 % of a training step. Backed by huge pages where available, and
// bounded: memory held never exceeds the peak in use by more than max(64 MiB, 12.5 %), however
// sizes vary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>

namespace rondo::nn {

struct MemoryUse {
  size_t in_use = 0;   // bytes of live blocks, including rounding
  size_t cached = 0;   // bytes of free blocks that still hold pages
  size_t peak = 0;     // the maximum in use at one time
  size_t watched = 0;  // the same since the last watch()
};

// Blocks of memory, 64-byte aligned. Blocks up to 64 KiB come from malloc and are kept in lists by
// size, with eight sizes per doubling, so at most 12.5 % is wasted (below 512 bytes: whole cache
// lines). Larger blocks are cut from regions of 1 GiB of address space, preferring the smallest
// with resident pages, and merged with free neighbors when released, so that a step with other
// lengths reuses the same pages. When the bound is reached, the least recently used free blocks
// release their pages. Thread-safe.
class CachingMemory {
 public:
  CachingMemory() = default;
  // Returns only free blocks to the system.
  ~CachingMemory() { give_back(); }
  CachingMemory(const CachingMemory&) = delete;
  CachingMemory& operator=(const CachingMemory&) = delete;

  // Null if the system is out of memory, even after releasing everything cached.
  void* allocate(size_t bytes);
  void release(void* data);

  // Returns everything unused to the system.
  void give_back();
  MemoryUse use() const;
  // Restarts MemoryUse::watched from the current use.
  void watch();

  // Held around fork(), so that the child does not inherit a locked mutex.
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
  std::set<Block*, Smaller> free_;  // in regions, by size and address
  std::array<Header*, kSmallClasses> small_ = {};
  std::array<size_t, kSmallClasses> small_count_ = {};
  uint64_t clock_ = 0;  // counts releases, to find the least recently used blocks
  MemoryUse use_;
};

// Installs a CachingMemory for all CPU tensors; takes effect once and permanently. Does nothing and
// returns false under AddressSanitizer, which must see every allocation.
bool install_allocator();

// Of the installed allocator; all zero before it is installed.
MemoryUse memory_use();
void watch_memory();

}  // namespace rondo::nn
