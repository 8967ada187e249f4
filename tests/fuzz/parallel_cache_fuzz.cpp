// Fuzz target for the parallel corpus's cache, a file that anyone may have put into the folder. The
// fuzzer's input is one whole file. Checksums are not verified, since an attacker would update
// them: whatever the check of arrays accepts must be safe to read and have valid values.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "rondo/base/error.h"
#include "rondo/data/parallel_cache.h"

namespace {

void touch_side(const rondo::ParallelSide& side, int64_t count, int64_t largest,
                int64_t max_tokens) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = side.starts[i];
    const rondo::TokenSpan tokens(side.tokens + begin * rondo::dtype_size(side.type), side.type,
                                  side.starts[i + 1] - begin);
    RONDO_ASSERT(tokens.size() >= 1 && tokens.size() <= max_tokens);
    for (const int32_t token : tokens.to_vector()) {
      RONDO_ASSERT(token >= 0 && token <= largest);
    }
  }
}

void read_cache(const std::string& path) {
  const rondo::SafetensorsFile file = rondo::SafetensorsFile::open(path);
  const rondo::ParallelLimits limits{rondo::DType::i16, rondo::DType::u8, 300, 200, 8};
  const auto arrays = rondo::map_parallel(file, limits);
  (void)rondo::sources_unchanged(arrays ? arrays->files : "", "0", {});
  if (arrays) {
    RONDO_ASSERT(arrays->lines[arrays->count - 1] <= arrays->counts.lines);
    touch_side(arrays->source, arrays->count, limits.source_largest, limits.max_tokens);
    touch_side(arrays->target, arrays->count, limits.target_largest, limits.max_tokens);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int memory = ::memfd_create("cache", MFD_CLOEXEC);
  RONDO_ASSERT(memory >= 0 && ::ftruncate(memory, 0) == 0);
  RONDO_ASSERT(::pwrite(memory, data, size, 0) == static_cast<ssize_t>(size));
  try {
    read_cache("/proc/self/fd/" + std::to_string(memory));
  } catch (const rondo::Error&) {  // the only way to reject a file
  }
  return 0;
}
