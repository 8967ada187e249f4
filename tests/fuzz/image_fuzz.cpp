// Fuzz target for the code that reads untrusted images: the JPEG and PNG decoders (with EXIF), tar
// archives, IDX arrays and CIFAR records.
//
// The first byte of the input selects which of them reads the rest: 0 an image at full size, 1 an
// image scaled down, 2 tar, 3 IDX, 4 CIFAR, others as one of these. Only rondo::Error may be
// thrown; whatever is accepted must lie inside the input.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rondo/base/error.h"
#include "rondo/image/archive.h"
#include "rondo/image/decode.h"

namespace {

volatile uint8_t fuzz_sink = 0;  // keeps the reads from being optimized away

// Small limits: the fuzzer should try many files, not decompress large ones.
constexpr rondo::DecodeLimits kFuzzLimits{2048, 1 << 18};

void decode(std::string_view bytes, int64_t min_side) {
  rondo::ImageSize true_size;
  const rondo::Image image = rondo::decode_image(
      bytes, "fuzz",
      [&](const rondo::ImageSize& size) {
        true_size = size;
        return min_side;
      },
      kFuzzLimits);
  RONDO_ASSERT(image.width >= 1 && image.width <= true_size.width);
  RONDO_ASSERT(image.height >= 1 && image.height <= true_size.height);
  RONDO_ASSERT(image.pixels.size() == static_cast<size_t>(image.width * image.height) * 3);
  fuzz_sink = image.pixels.back();
}

void list(std::string_view bytes) {
  for (const rondo::TarEntry& entry : rondo::list_tar(bytes, "fuzz")) {
    RONDO_ASSERT(entry.begin <= bytes.size() && entry.size <= bytes.size() - entry.begin);
    RONDO_ASSERT(!entry.name.empty() && entry.name.find('\0') == std::string::npos);
    if (entry.size > 0) {
      fuzz_sink = static_cast<uint8_t>(bytes[entry.begin + entry.size - 1]);
    }
  }
}

void parse_arrays(std::string_view bytes, bool idx) {
  if (idx) {
    const rondo::IdxArray array = rondo::parse_idx(bytes, "fuzz");
    size_t values = 1;
    for (const int64_t extent : array.shape) {
      values *= static_cast<size_t>(extent);
    }
    RONDO_ASSERT(array.begin + values == bytes.size() && values > 0);
    return;
  }
  const rondo::CifarRecords records = rondo::parse_cifar(bytes, "fuzz");
  RONDO_ASSERT(static_cast<size_t>(records.count) * records.record == bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 5) {
      case 0:
        decode(bytes, 0);
        break;
      case 1:
        decode(bytes, 5);
        break;
      case 2:
        list(bytes);
        break;
      default:
        parse_arrays(bytes, data[0] % 5 == 3);
    }
  } catch (const rondo::Error&) {  // the only way to reject a file
  }
  return 0;
}
