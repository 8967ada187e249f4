// Writing safetensors: build and validate the header, then stream each tensor from memory.
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/limits.h"
#include "rondo/base/safetensors.h"
#include "rondo/base/safetensors_parts.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr size_t kDataAlignment = 8;  // the widest element

[[noreturn]] void refuse_write(const std::string& path, const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("{}: cannot write: {}", path, what));
}

std::string json_quoted(const std::string& text) { return nlohmann::json(text).dump(); }

// The size of one tensor in bytes, after checking everything the reader would reject.
int64_t check_tensor(const std::string& path, const TensorRef& tensor) {
  const std::string shown = printable(tensor.name);
  if (tensor.name.size() > kMaxTensorNameBytes || !valid_utf8(tensor.name)) {
    refuse_write(path, fmt::format("tensor '{}': expected a UTF-8 name of at most {} bytes", shown,
                                   kMaxTensorNameBytes));
  }
  if (tensor.name == kMetadataKey) {
    refuse_write(path, fmt::format("tensor '{}': the name is reserved", shown));
  }
  if (tensor.shape.size() > kMaxTensorRank) {
    refuse_write(path, fmt::format("tensor '{}': expected at most {} dimensions, got {}", shown,
                                   kMaxTensorRank, tensor.shape.size()));
  }
  for (const int64_t extent : tensor.shape) {
    if (extent < 0) {
      refuse_write(path, fmt::format("tensor '{}': expected extents of at least 0, got shape {}",
                                     shown, shape_text(tensor.shape)));
    }
  }
  const std::optional<int64_t> bytes = checked_bytes(tensor.dtype, tensor.shape);
  if (!bytes) {
    refuse_write(path, fmt::format("tensor '{}': shape {} is too large to address", shown,
                                   shape_text(tensor.shape)));
  }
  RONDO_ASSERT(tensor.data != nullptr || *bytes == 0);
  return *bytes;
}

// The size of each tensor in bytes.
std::vector<int64_t> check_tensors(const std::string& path, const std::vector<TensorRef>& tensors) {
  if (tensors.size() > kMaxTensorsPerFile) {
    refuse_write(path, fmt::format("expected at most {} tensors, got {}", kMaxTensorsPerFile,
                                   tensors.size()));
  }
  std::unordered_set<std::string> names;
  std::vector<int64_t> sizes;
  for (const TensorRef& tensor : tensors) {
    sizes.push_back(check_tensor(path, tensor));
    if (!names.insert(tensor.name).second) {
      refuse_write(path, fmt::format("tensor '{}' is given twice", printable(tensor.name)));
    }
  }
  return sizes;
}

std::string checksum_of(const std::vector<TensorRef>& tensors, const std::vector<int64_t>& sizes,
                        const std::map<std::string, std::string>& metadata) {
  FileHash hash(metadata);
  for (size_t i = 0; i < tensors.size(); ++i) {
    hash.add(tensors[i].name, tensors[i].dtype, tensors[i].shape, tensors[i].data,
             static_cast<uint64_t>(sizes[i]));
  }
  return hash.text();
}

std::string metadata_json(const std::string& path,
                          const std::map<std::string, std::string>& metadata) {
  if (metadata.size() > kMaxMetadataEntries) {
    refuse_write(path, fmt::format("expected at most {} entries of metadata, got {}",
                                   kMaxMetadataEntries, metadata.size()));
  }
  std::string json;
  for (const auto& [key, value] : metadata) {
    if (key.size() > kMaxTensorNameBytes || !valid_utf8(key) || !valid_utf8(value)) {
      refuse_write(path, fmt::format("metadata '{}': expected UTF-8, and a key of at most {} bytes",
                                     printable(key), kMaxTensorNameBytes));
    }
    json += fmt::format("{}{}:{}", json.empty() ? "" : ",", json_quoted(key), json_quoted(value));
  }
  return fmt::format("\"{}\":{{{}}}", kMetadataKey, json);
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<TensorRef>& tensors,
                       const std::map<std::string, std::string>& metadata, Checksum checksum) {
  const std::vector<int64_t> sizes = check_tensors(path, tensors);
  std::map<std::string, std::string> all = metadata;
  if (checksum == Checksum::xxh3) {
    all[kFileChecksumKey] = checksum_of(tensors, sizes, metadata);
  }
  std::string header = "{";
  if (!all.empty()) {
    header += metadata_json(path, all);
  }
  int64_t begin = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t end = begin + sizes[i];  // all of it is in memory, so the sum cannot overflow
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "", json_quoted(tensors[i].name),
                          dtype_name(tensors[i].dtype), shape_text(tensors[i].shape), begin, end);
    begin = end;
  }
  header += "}";
  // The length field takes 8 bytes, so aligning the header aligns the data.
  header.resize((header.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment, ' ');
  if (header.size() > kMaxSafetensorsHeaderBytes) {
    refuse_write(path, fmt::format("expected a header of at most {} bytes, got {}",
                                   kMaxSafetensorsHeaderBytes, header.size()));
  }
  AtomicFile file(path);
  uint8_t length[8];
  for (size_t i = 0; i < sizeof(length); ++i) {
    length[i] = static_cast<uint8_t>(uint64_t{header.size()} >> (8 * i));
  }
  file.write(length, sizeof(length));
  file.write(header);
  for (size_t i = 0; i < tensors.size(); ++i) {
    file.write(tensors[i].data, static_cast<size_t>(sizes[i]));
  }
  file.commit();
}

}  // namespace rondo
