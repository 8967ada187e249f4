// Integrity checks of safetensors contents: checksums and non-finite values.
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "rondo/base/error.h"
#include "rondo/base/safetensors.h"
#include "rondo/base/safetensors_parts.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

XXH3_state_t* hash_state(void* state) { return static_cast<XXH3_state_t*>(state); }

template <class Bits>
Bits load_bits(const uint8_t* data, int64_t index) {
  Bits bits;
  std::memcpy(&bits, data + index * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
  return bits;
}

// The first number whose exponent bits are all set. Scans whole blocks first, which compilers
// vectorize.
template <class Bits>
std::optional<int64_t> first_full_exponent(const uint8_t* data, int64_t count, Bits exponent) {
  constexpr int64_t kBlock = 4096;
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t last = std::min(first + kBlock, count);
    Bits found = 0;
    for (int64_t i = first; i < last; ++i) {
      found |= static_cast<Bits>((load_bits<Bits>(data, i) & exponent) == exponent);
    }
    for (int64_t i = first; found != 0 && i < last; ++i) {
      if ((load_bits<Bits>(data, i) & exponent) == exponent) return i;
    }
  }
  return std::nullopt;
}

}  // namespace

FileHash::FileHash(const std::map<std::string, std::string>& metadata)
    : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(hash_state(state_));
  for (const auto& [key, value] : metadata) {
    if (key == kFileChecksumKey) continue;
    add_text(key);
    add_text(value);
  }
}

FileHash::~FileHash() { XXH3_freeState(hash_state(state_)); }

// Prefixed with its length, so that different lists of texts never give the same bytes.
void FileHash::add_text(const std::string& text) {
  const uint64_t size = text.size();
  XXH3_64bits_update(hash_state(state_), &size, sizeof(size));
  XXH3_64bits_update(hash_state(state_), text.data(), text.size());
}

void FileHash::add(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
                   const void* data, uint64_t bytes) {
  add_text(name);
  add_text(dtype_name(dtype) + shape_text(shape));
  if (bytes > 0) XXH3_64bits_update(hash_state(state_), data, bytes);
}

std::string FileHash::text() const {
  return fmt::format("xxh3:{:016x}", XXH3_64bits_digest(hash_state(state_)));
}

void verify_checksum(const SafetensorsHeader& header, const uint8_t* file,
                     const std::string& source_name) {
  const auto expected = header.metadata.find(kFileChecksumKey);
  if (expected == header.metadata.end()) return;
  FileHash hash(header.metadata);
  for (const TensorEntry& entry : header.entries) {
    hash.add(entry.name, entry.dtype, entry.shape, file + header.data_begin + entry.begin,
             entry.end - entry.begin);
  }
  const std::string got = hash.text();
  if (got == expected->second) return;
  throw Error(
      ExitCode::bad_input,
      fmt::format("{}: checksum mismatch (expected {}, got {})", source_name,
                  printable(expected->second), got),
      "the file was damaged after it was written: copy or create it again; if it was changed "
      "on purpose, load it with --no-verify");
}

std::optional<int64_t> first_non_finite(DType dtype, const void* data, int64_t elements) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  switch (dtype) {
    case DType::f64:
      return first_full_exponent<uint64_t>(bytes, elements, 0x7FF0000000000000U);
    case DType::f32:
      return first_full_exponent<uint32_t>(bytes, elements, 0x7F800000U);
    case DType::f16:
      return first_full_exponent<uint16_t>(bytes, elements, 0x7C00U);
    case DType::bf16:
      return first_full_exponent<uint16_t>(bytes, elements, 0x7F80U);
    default:
      return std::nullopt;
  }
}

}  // namespace rondo
