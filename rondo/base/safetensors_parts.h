// What the safetensors reader and writer share: names, sizes, products, the header's parser.
// Internal to them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/base/safetensors.h"

namespace rondo {

// The key under which the header keeps metadata; no tensor may have it.
constexpr const char* kMetadataKey = "__metadata__";

std::optional<DType> dtype_from_name(std::string_view name);

// The element types we hold, for messages: "F64, F32, ...".
std::string supported_dtypes();

// Types that other programs write and Rondo does not hold (unsigned wide integers, 8-bit and
// smaller floats): worth a message other than "unknown".
bool is_foreign_dtype(std::string_view name);

// The bytes of a tensor, or nullopt if the count overflows 63 bits. Extents must not be negative.
// An extent of 0 counts as 1 while checking, since strides are products of the others.
std::optional<int64_t> checked_bytes(DType dtype, const std::vector<int64_t>& shape);

// "[2, 3]".
std::string shape_text(const std::vector<int64_t>& shape);

// The checksum of a file's contents, given in the order of the file.
class FileHash {
 public:
  explicit FileHash(const std::map<std::string, std::string>& metadata);
  ~FileHash();
  FileHash(const FileHash&) = delete;
  FileHash& operator=(const FileHash&) = delete;

  void add(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
           const void* data, uint64_t bytes);
  std::string text() const;  // as kFileChecksumKey holds it

 private:
  void add_text(const std::string& text);

  void* state_;  // of xxhash, whose header stays out of ours
};

// Reads the JSON header in [begin, end) into `header`'s entries, in the order written, and
// metadata. Checks each tensor by itself; how they lie in the file is the caller's to check.
void parse_header_json(const char* begin, const char* end, const std::string& source,
                       SafetensorsHeader& header);

}  // namespace rondo
