// The safetensors file format: a length, a JSON header, then the bytes of every tensor.
//
//   u64 little-endian   N, the length of the header; at most 100,000,000
//   N bytes of JSON     {"__metadata__": {text: text}, NAME: {"dtype", "shape", "data_offsets"}}
//   the data section    data_offsets [begin, end) count from its start; together they cover it
//                       exactly, without gap or overlap, to the end of the file
//
// Nothing in the file is executed and nothing is allocated on the file's word: sizes are compared
// with the file first. A malformed file is Error{bad_input} whose message names the file, the
// tensor, what was expected and what was found.
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
const char* dtype_name(DType dtype);  // as the format spells it: "F32", "BOOL"

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
  uint64_t data_begin = 0;  // where in the file the data section starts
};

// Checks the whole structure of the file in memory (without reading tensor values) and returns its
// table of contents. On return every entry lies inside [data_begin, file_size). `source_name` is
// for messages. Memory is bounded by limits.h; the JSON is never held as a tree.
SafetensorsHeader parse_safetensors_header(const uint8_t* file, uint64_t file_size,
                                           const std::string& source_name);

// Under this key of the metadata, files written with Checksum::xxh3 hold a checksum of all other
// metadata, of every tensor's name, type and shape, and of all data.
constexpr const char* kFileChecksumKey = "rondo.checksum";

enum class Checksum { none, xxh3 };

// Error{bad_input} if the file in memory, whose header was parsed to `header`, holds a checksum
// that does not match. Reads all data. Files without one (of other programs) pass.
void verify_checksum(const SafetensorsHeader& header, const uint8_t* file,
                     const std::string& source_name);

// The index of the first element that is infinite or not a number. `data` may be unaligned.
std::optional<int64_t> first_non_finite(DType dtype, const void* data, int64_t elements);

// A read-only view over a mapped file; tensors are never copied.
class SafetensorsFile {
 public:
  // Error{io} if the file cannot be mapped, Error{bad_input} if it is malformed.
  static SafetensorsFile open(const std::string& path);

  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  const TensorEntry* find(std::string_view name) const;  // null if there is none

  // The first byte of an entry of this file, valid while this object (or the one it was moved to)
  // lives. Little-endian, row-major. Rondo's own files start the data section at a multiple of 8,
  // but the format does not promise that a tensor is aligned for its type: copy with memcpy, or
  // check the pointer before using it in place.
  const uint8_t* bytes(const TensorEntry& entry) const;

  // Error{io} if the file has become shorter since it was opened: for those who read for long.
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

// Writes `path` atomically: the header, then each tensor streamed from its own memory. The order is
// kept; the header is padded with spaces so that the data section starts at a multiple of 8 (give
// wide types first to have every tensor aligned). Error{bad_input} if two names are equal, a name
// or metadata is not UTF-8, or anything exceeds what the reader accepts; Error{io} from writing.
void write_safetensors(const std::string& path, const std::vector<TensorRef>& tensors,
                       const std::map<std::string, std::string>& metadata = {},
                       Checksum checksum = Checksum::none);

}  // namespace rondo
