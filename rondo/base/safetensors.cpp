// Reading safetensors: the framing of the header, the tiling of the data, and the mapped view.
#include "rondo/base/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "rondo/base/error.h"
#include "rondo/base/limits.h"
#include "rondo/base/safetensors_parts.h"
#include "rondo/base/text.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "tensors are used in place, and safetensors is little-endian");

namespace rondo {
namespace {

constexpr uint64_t kLengthBytes = 8;

[[noreturn]] void fail_frame(const std::string& source, const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", source, what),
              "the file may be truncated, or may not be a safetensors file");
}

uint64_t read_length(const uint8_t* bytes) {
  uint64_t value = 0;
  for (uint64_t i = 0; i < kLengthBytes; ++i) {
    value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  }
  return value;
}

void sort_by_offset(std::vector<TensorEntry>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
}

// Checks that the entries, sorted by offset, tile [0, data_size) without gaps or overlaps.
void check_tiling(const std::vector<TensorEntry>& entries, uint64_t data_size,
                  const std::string& source) {
  uint64_t expected = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin != expected) {
      fail_frame(source, fmt::format("tensor '{}': expected its data to begin at byte {}, where "
                                     "the one before ends, got {} ({})",
                                     printable(entry.name), expected, entry.begin,
                                     entry.begin < expected ? "they overlap" : "there is a gap"));
    }
    if (entry.end > data_size) {
      fail_frame(source, fmt::format("tensor '{}': expected its data to end within the file's {} "
                                     "bytes of data, got {}",
                                     printable(entry.name), data_size, entry.end));
    }
    expected = entry.end;
  }
  if (expected != data_size) {
    fail_frame(source, fmt::format("expected {} bytes of data after the header, got {}", expected,
                                   data_size));
  }
}

// The entries' indices sorted by name; rejects duplicate names.
std::vector<size_t> sort_names(const std::vector<TensorEntry>& entries, const std::string& source) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return entries[a].name < entries[b].name; });
  const auto twice = std::adjacent_find(order.begin(), order.end(), [&](size_t a, size_t b) {
    return entries[a].name == entries[b].name;
  });
  if (twice != order.end()) {
    throw Error(ExitCode::bad_input, fmt::format("{}: tensor '{}' is given twice", source,
                                                 printable(entries[*twice].name)));
  }
  return order;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(const uint8_t* file, uint64_t file_size,
                                           const std::string& source_name) {
  if (file_size < kLengthBytes) {
    fail_frame(source_name, fmt::format("expected a safetensors file of at least {} bytes, got {}",
                                        kLengthBytes, file_size));
  }
  const uint64_t length = read_length(file);
  if (length > kMaxSafetensorsHeaderBytes) {
    fail_frame(source_name, fmt::format("expected a header of at most {} bytes, got {}",
                                        kMaxSafetensorsHeaderBytes, length));
  }
  if (length > file_size - kLengthBytes) {
    fail_frame(source_name, fmt::format("expected a header of {} bytes, got {} bytes to the end "
                                        "of the file",
                                        length, file_size - kLengthBytes));
  }
  SafetensorsHeader header;
  header.data_begin = kLengthBytes + length;
  const auto* text = reinterpret_cast<const char*>(file + kLengthBytes);
  parse_header_json(text, text + length, source_name, header);
  sort_by_offset(header.entries);
  header.by_name = sort_names(header.entries, source_name);
  check_tiling(header.entries, file_size - header.data_begin, source_name);
  return header;
}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result;
  result.path_ = path;
  result.file_ = MappedFile(path);
  result.header_ = parse_safetensors_header(result.file_.data(), result.file_.size(), path);
  return result;
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const std::vector<TensorEntry>& entries = header_.entries;
  const std::vector<size_t>& order = header_.by_name;
  const auto at = std::lower_bound(
      order.begin(), order.end(), name,
      [&](size_t index, std::string_view wanted) { return entries[index].name < wanted; });
  return at != order.end() && entries[*at].name == name ? &entries[*at] : nullptr;
}

const uint8_t* SafetensorsFile::bytes(const TensorEntry& entry) const {
  // Guards against an entry of another file.
  RONDO_ASSERT(entry.begin <= entry.end && entry.end <= file_.size() - header_.data_begin);
  return file_.data() + header_.data_begin + entry.begin;
}

}  // namespace rondo
