// Shared by the safetensors reader and writer: names, sizes, checksums, the header parser. Internal
// to them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/base/safetensors.h"

namespace rondo {

// The header key of the metadata; reserved, so not a valid tensor name.
constexpr const char* kMetadataKey = "__metadata__";

std::optional<DType> dtype_from_name(std::string_view name);

// The supported element types, for messages: "F64, F32, ...".
std::string supported_dtypes();

// Whether this is a type that other programs write but Rondo does not support (wide unsigned
// integers, 8-bit and smaller floats), which deserves a better message than "unknown".
bool is_foreign_dtype(std::string_view name);

// The size of a tensor in bytes, or nullopt if it overflows 63 bits. Extents must be non-negative.
// An extent of 0 counts as 1 in the check, since strides are products of the other extents.
std::optional<int64_t> checked_bytes(DType dtype, const std::vector<int64_t>& shape);

// "[2, 3]".
std::string shape_text(const std::vector<int64_t>& shape);

// The checksum of a file's contents, added in file order.
class FileHash {
 public:
  explicit FileHash(const std::map<std::string, std::string>& metadata);
  ~FileHash();
  FileHash(const FileHash&) = delete;
  FileHash& operator=(const FileHash&) = delete;

  void add(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
           const void* data, uint64_t bytes);
  std::string text() const;  // the value of kFileChecksumKey

 private:
  void add_text(const std::string& text);

  void* state_;  // xxhash state; keeps its header out of ours
};

// Parses the JSON header in [begin, end) into `header`: its entries, in source order, and metadata.
// Validates each tensor on its own; the caller checks how they tile the file.
void parse_header_json(const char* begin, const char* end, const std::string& source,
                       SafetensorsHeader& header);

}  // namespace rondo
