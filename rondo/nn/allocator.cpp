// Blocks, regions, and a libtorch allocator built on them.
#include "rondo/nn/allocator.h"

#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "rondo/base/error.h"
#include "rondo/base/memory_limit.h"
#include "rondo/base/text.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RONDO_UNDER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define RONDO_UNDER_ASAN 1
#endif

namespace rondo::nn {
namespace {

constexpr size_t kLine = 64;  // alignment, and room for a header
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSmallLimit = size_t{64} << 10;
constexpr size_t kSmallKept = size_t{256} << 10;  // free bytes per small size; 16 MiB in total
constexpr size_t kRegion = size_t{1} << 30;
// Under ulimit -v or -d: regions of this size, and this much is left to others, some of which
// (oneDNN, OpenBLAS) handle running out of memory badly.
constexpr size_t kSmallRegion = size_t{32} << 20;
constexpr size_t kLeftToOthers = size_t{64} << 20;
constexpr size_t kBoundSlack = size_t{64} << 20;
constexpr size_t kLargest = size_t{1} << 47;  // beyond any address

size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

size_t floor_log2(size_t x) { return 63U - static_cast<size_t>(__builtin_clzll(x)); }

// Sizes of 1, 2, …, 8 lines, then eight per doubling.
struct SmallClass {
  size_t index = 0;
  size_t size = 0;
};

SmallClass small_class(size_t bytes) {
  const size_t lines = std::max<size_t>(1, (bytes + kLine - 1) / kLine);
  if (lines <= 8) return {lines - 1, lines * kLine};
  const size_t doubling = floor_log2(lines - 1) - 3;
  const size_t steps = ((lines - 1) >> doubling) + 1;  // 9 … 16
  return {8 * doubling + steps - 1, (steps << doubling) * kLine};
}

// Sixteen sizes per doubling, so that similar lengths share a size; plus a page for the header.
size_t large_size(size_t bytes) {
  const size_t step = std::max(kPage, (size_t{1} << floor_log2(bytes - 1)) / 16);
  return round_up(bytes, step) + kPage;
}

bool under_limits() {
  static const bool limited = !named_limits().empty();
  return limited;
}

// Address space aligned to huge pages; pages are faulted in on first touch.
char* map_region(size_t size) {
  const size_t spare = kHugePage + (under_limits() ? kLeftToOthers : 0);
  void* found =
      mmap(nullptr, size + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(found);
  const size_t skip = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (skip > 0) munmap(begin, skip);
  munmap(begin + skip + size, spare - skip);
  madvise(begin + skip, size, MADV_HUGEPAGE);  // if refused: small pages
  return begin + skip;
}

}  // namespace

// A used or free piece of a region. Stored outside the memory it describes, whose pages may be
// released.
struct CachingMemory::Block {
  char* start = nullptr;
  size_t size = 0;
  size_t touched = 0;     // of a free block: bytes from its start that may hold pages
  uint64_t freed_at = 0;  // of a free block: the clock when it was released
  bool free = true;
  Block* before = nullptr;  // neighbors in the region
  Block* after = nullptr;
};

// Stored in the cache line before the data.
struct CachingMemory::Header {
  Block* block = nullptr;  // null: a small block
  size_t index = 0;        // of a small block: its size class, and that size
  size_t size = 0;
  Header* next = nullptr;  // in the list of free small blocks
};

bool CachingMemory::Smaller::operator()(const Block* a, const Block* b) const {
  return a->size != b->size ? a->size < b->size : a->start < b->start;
}

void* CachingMemory::allocate(size_t bytes) {
  if (bytes > kLargest) return nullptr;
  const std::lock_guard<std::mutex> guard(mutex_);
  void* data = bytes <= kSmallLimit ? allocate_small(bytes) : allocate_large(bytes);
  count_peak();
  return data;
}

void CachingMemory::release(void* data) {
  auto* header = reinterpret_cast<Header*>(static_cast<char*>(data) - kLine);
  const std::lock_guard<std::mutex> guard(mutex_);
  if (header->block == nullptr) {
    release_small(header);
  } else {
    release_large(header->block);
  }
}

void* CachingMemory::allocate_small(size_t bytes) {
  const SmallClass kind = small_class(bytes);
  const size_t whole = kind.size + kLine;
  Header* header = small_[kind.index];
  if (header != nullptr) {
    small_[kind.index] = header->next;
    --small_count_[kind.index];
    use_.cached -= whole;
  } else {
    void* fresh = nullptr;
    if (posix_memalign(&fresh, kLine, whole) != 0) return nullptr;
    header = new (fresh) Header;
    header->index = kind.index;
    header->size = kind.size;
  }
  use_.in_use += whole;
  return reinterpret_cast<char*>(header) + kLine;
}

void CachingMemory::release_small(Header* header) {
  const size_t whole = header->size + kLine;
  use_.in_use -= whole;
  if ((small_count_[header->index] + 1) * whole > kSmallKept) {
    std::free(header);
    return;
  }
  header->next = small_[header->index];
  small_[header->index] = header;
  ++small_count_[header->index];
  use_.cached += whole;
}

void* CachingMemory::allocate_large(size_t bytes) {
  static_assert(sizeof(Header) <= kLine);
  Block* block = take(large_size(bytes));
  if (block == nullptr) return nullptr;
  auto* header = new (block->start) Header;
  header->block = block;
  return block->start + kLine;
}

// Takes the smallest free block of at least `size`, split to fit.
CachingMemory::Block* CachingMemory::take(size_t size) {
  Block wanted;
  wanted.size = size;
  auto found = free_.lower_bound(&wanted);
  if (found == free_.end()) {
    if (!add_region(size)) return nullptr;
    found = free_.lower_bound(&wanted);
  }
  Block* block = *found;
  // Prefer the smallest with resident pages: faulting in new ones costs more than the split.
  for (auto other = found; other != free_.end(); ++other) {
    if ((*other)->touched < size) continue;
    block = *other;
    break;
  }
  unlist_free(block);
  if (block->size - size > size / 16) split(block, size);  // smaller rests are not worth a block
  block->free = false;
  use_.in_use += block->size;
  count_peak();
  keep_within_bound();
  return block;
}

void CachingMemory::release_large(Block* block) {
  use_.in_use -= block->size;
  block->free = true;
  block->touched = block->size;
  block->freed_at = ++clock_;
  if (Block* right = block->after; right != nullptr && right->free) {
    unlist_free(right);
    join(block, right);
  }
  if (Block* left = block->before; left != nullptr && left->free) {
    unlist_free(left);
    left->freed_at = block->freed_at;
    join(left, block);
    block = left;
  }
  list_free(block);
}

bool CachingMemory::add_region(size_t size) {
  const size_t least = round_up(size, kHugePage);
  size_t whole = std::max(least, under_limits() ? kSmallRegion : kRegion);
  char* start = map_region(whole);
  if (start == nullptr) {
    drop_all();
    whole = least;
    start = map_region(whole);
  }
  if (start == nullptr) return false;
  auto block = std::make_unique<Block>();
  block->start = start;
  block->size = whole;
  list_free(block.release());  // deleted in join() or drop_pages()
  return true;
}

// Leaves `size` bytes in `block`; the rest becomes a free block after it.
void CachingMemory::split(Block* block, size_t size) {
  auto rest = std::make_unique<Block>();
  rest->start = block->start + size;
  rest->size = block->size - size;
  rest->touched = block->touched > size ? block->touched - size : 0;
  rest->freed_at = block->freed_at;
  rest->before = block;
  rest->after = block->after;
  if (rest->after != nullptr) rest->after->before = rest.get();
  block->after = rest.get();
  block->size = size;
  list_free(rest.release());
}

// Merges two free, unlisted neighbors into `left`.
void CachingMemory::join(Block* left, Block* right) {
  if (right->touched > 0) left->touched = left->size + right->touched;
  left->size += right->size;
  left->after = right->after;
  if (left->after != nullptr) left->after->before = left;
  delete right;
}

void CachingMemory::list_free(Block* block) {
  free_.insert(block);
  use_.cached += block->touched;
}

void CachingMemory::unlist_free(Block* block) {
  free_.erase(block);
  use_.cached -= block->touched;
}

// Returns a free block's pages to the system, and unmaps a region that is entirely free.
void CachingMemory::drop_pages(Block* block) {
  if (block->before == nullptr && block->after == nullptr) {
    unlist_free(block);
    munmap(block->start, block->size);
    delete block;
    return;
  }
  madvise(block->start, block->touched, MADV_DONTNEED);
  use_.cached -= block->touched;
  block->touched = 0;
}

size_t CachingMemory::bound() const { return use_.peak + std::max(kBoundSlack, use_.peak / 8); }

// A linear search is fine: this is rare, and the system call costs more.
void CachingMemory::keep_within_bound() {
  while (use_.in_use + use_.cached > bound()) {
    Block* oldest = nullptr;
    for (Block* block : free_) {
      if (block->touched == 0) continue;
      if (oldest == nullptr || block->freed_at < oldest->freed_at) oldest = block;
    }
    if (oldest == nullptr) return;  // only small blocks are cached; they have their own bound
    drop_pages(oldest);
  }
}

void CachingMemory::drop_all() {
  const std::vector<Block*> all(free_.begin(), free_.end());
  for (Block* block : all) drop_pages(block);
  for (size_t i = 0; i < kSmallClasses; ++i) {
    while (small_[i] != nullptr) {
      Header* header = small_[i];
      small_[i] = header->next;
      use_.cached -= header->size + kLine;
      std::free(header);
    }
    small_count_[i] = 0;
  }
}

void CachingMemory::give_back() {
  const std::lock_guard<std::mutex> guard(mutex_);
  drop_all();
}

void CachingMemory::count_peak() {
  use_.peak = std::max(use_.peak, use_.in_use);
  use_.watched = std::max(use_.watched, use_.in_use);
}

void CachingMemory::watch() {
  const std::lock_guard<std::mutex> guard(mutex_);
  use_.watched = use_.in_use;
}

MemoryUse CachingMemory::use() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return use_;
}

namespace {

// Never destroyed: static tensors are released after main returns.
CachingMemory* tensor_memory = nullptr;

void release_tensor(void* data) {
  if (data != nullptr) tensor_memory->release(data);
}

class TensorAllocator : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(size_t bytes) override {
#else
  c10::DataPtr allocate(size_t bytes) const override {
#endif
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &release_tensor, cpu};
    void* data = tensor_memory->allocate(bytes);
    if (data == nullptr) refuse(bytes);
    return {data, data, &release_tensor, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_tensor; }
#if TORCH_VERSION_MAJOR >= 2
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
#endif

 private:
  [[noreturn]] static void refuse(size_t bytes) {
    throw Error(
        ExitCode::failure,
        fmt::format("out of memory: cannot allocate a tensor of {} bytes ({}) with {} already "
                    "in use{}",
                    bytes, human_bytes(static_cast<int64_t>(bytes)),
                    human_bytes(static_cast<int64_t>(tensor_memory->use().in_use)), named_limits()),
        "choose a smaller model, batch or sequence");
  }
};

}  // namespace

bool install_allocator() {
#if defined(RONDO_UNDER_ASAN)
  return false;
#else
  static std::once_flag once;
  std::call_once(once, [] {
    tensor_memory = new CachingMemory;
    pthread_atfork([] { tensor_memory->lock(); }, [] { tensor_memory->unlock(); },
                   [] { tensor_memory->unlock(); });
    c10::SetCPUAllocator(new TensorAllocator);
  });
  return true;
#endif
}

void watch_memory() {
  if (tensor_memory != nullptr) tensor_memory->watch();
}

MemoryUse memory_use() { return tensor_memory != nullptr ? tensor_memory->use() : MemoryUse{}; }

}  // namespace rondo::nn
