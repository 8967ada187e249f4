// The safetensors file format: a length, a JSON header, then the tensor data.
//
//   u64 little-endian   N, the header length; at most 100,000,000
//   N bytes of JSON     {"__metadata__": {text: text}, NAME: {"dtype", "shape", "data_offsets"}}
//   the data section    data_offsets [begin, end) are relative to its start; together they tile it
//                       exactly, without gaps or overlaps, to the end of the file
//
// Nothing in the file is executed, and claimed sizes are checked against the file before anything
// is allocated. A malformed file throws Error{bad_input} naming the file, the tensor, what was
// expected and what was found.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/base/files.h"

namespace rondo {

enum class DType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

int64_t dtype_size(DType dtype);      // bytes per element
const char* dtype_name(DType dtype);  // as spelled in the format: "F32", "BOOL"

struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // empty for a scalar; an extent may be 0
  uint64_t begin = 0;          // byte offsets in the data section
  uint64_t end = 0;

  int64_t elements() const;  // product of the shape; 1 for a scalar
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in file-offset order
  std::vector<size_t> by_name;       // indices of entries, sorted by name
  std::map<std::string, std::string> metadata;
  uint64_t data_begin = 0;  // file offset of the data section
};

// Validates the structure of the file in memory (without reading tensor values) and returns its
// header. On return every entry lies inside [data_begin, file_size). `source_name` is for messages.
// Memory is bounded by limits.h; no JSON tree is built.
SafetensorsHeader parse_safetensors_header(const uint8_t* file, uint64_t file_size,
                                           const std::string& source_name);

// Metadata key of the checksum in files written with Checksum::xxh3. It covers all other metadata,
// every tensor's name, type and shape, and all data.
constexpr const char* kFileChecksumKey = "rondo.checksum";

enum class Checksum { none, xxh3 };

// Throws Error{bad_input} if the file in memory, whose parsed header is `header`, has a checksum
// that does not match. Reads all data. Files without a checksum (from other programs) pass.
void verify_checksum(const SafetensorsHeader& header, const uint8_t* file,
                     const std::string& source_name);

// The index of the first infinite or NaN element. `data` may be unaligned.
std::optional<int64_t> first_non_finite(DType dtype, const void* data, int64_t elements);

// A read-only view over a mapped file; tensors are never copied.
class SafetensorsFile {
 public:
  // Throws Error{io} if the file cannot be mapped, Error{bad_input} if it is malformed.
  static SafetensorsFile open(const std::string& path);

  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  const TensorEntry* find(std::string_view name) const;  // null if there is none

  // The data of an entry of this file, valid while this object (or the one it was moved to) lives.
  // Little-endian, row-major. Rondo's own files align the data section to 8 bytes, but the format
  // does not guarantee that a tensor is aligned for its type: use memcpy, or check the pointer
  // before using it in place.
  const uint8_t* bytes(const TensorEntry& entry) const;

  // Throws Error{io} if the file has been truncated since it was opened. For long-lived readers.
  void require_whole() const { file_.require_whole(path_); }

  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::string& path() const { return path_; }

  // See verify_checksum().
  void verify() const { verify_checksum(header_, file_.data(), path_); }

 private:
  SafetensorsFile() = default;

  std::string path_;
  MappedFile file_;
  SafetensorsHeader header_;
};

struct TensorRef {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  const void* data = nullptr;  // contiguous, row-major; may be null when there are no elements
};

// Writes `path` atomically: the header, then each tensor streamed from memory, in the given order.
// The header is padded with spaces so that the data section starts at a multiple of 8 (put wide
// types first to align every tensor). Throws Error{bad_input} on duplicate names, names or metadata
// that are not UTF-8, or anything the reader would reject; Error{io} if writing fails.
void write_safetensors(const std::string& path, const std::vector<TensorRef>& tensors,
                       const std::map<std::string, std::string>& metadata = {},
                       Checksum checksum = Checksum::none);

}  // namespace rondo
