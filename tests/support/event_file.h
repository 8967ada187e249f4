// TensorBoard event files, read by an independent reader: framing, checksums, protobuf. Torch-free.
#pragma once

#include <cstring>
#include <map>
#include <vector>

#include "tests/base/base_test_util.h"

namespace rondo::testing {

// CRC-32C bit by bit, from its definition.
inline uint32_t plain_crc32c(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1) ^ 0x82F63B78U : crc >> 1;
  }
  return ~crc;
}

inline uint32_t unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xA282EAD8U;
  return (rotated >> 17) | (rotated << 15);
}

template <class T>
T take_raw(const std::string& bytes, size_t& at) {
  T value{};
  if (at + sizeof(T) > bytes.size()) throw std::runtime_error("cut short");
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  at += sizeof(T);
  return value;
}

inline std::string take_bytes(const std::string& bytes, size_t& at, uint64_t count) {
  if (at + count > bytes.size()) throw std::runtime_error("cut short");
  at += count;
  return bytes.substr(at - count, count);
}

inline uint64_t take_varint(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take_raw<uint8_t>(bytes, at);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

// Fields of a message by number: numbers as their eight bytes, the rest as they are.
inline std::multimap<uint64_t, std::string> fields_of(const std::string& message) {
  std::multimap<uint64_t, std::string> fields;
  for (size_t at = 0; at < message.size();) {
    const uint64_t key = take_varint(message, at);
    const int wire = static_cast<int>(key & 7);
    std::string value;
    if (wire == 0) {
      const uint64_t number = take_varint(message, at);
      value.assign(reinterpret_cast<const char*>(&number), 8);
    } else {
      const uint64_t size = wire == 1 ? 8 : wire == 5 ? 4 : take_varint(message, at);
      value = take_bytes(message, at, size);
    }
    fields.emplace(key >> 3, value);
  }
  return fields;
}

template <class T>
T as_number(const std::string& bytes) {
  size_t at = 0;
  return take_raw<T>(bytes, at);
}

struct ReadEvent {
  double time = 0;
  int64_t step = 0;
  std::string version;
  bool starts = false;  // discards what was logged before for this step and later ones
  std::map<std::string, float> scalars;
};

// A record that was truncated by a kill ends the file.
inline std::vector<ReadEvent> read_events(const std::string& path) {
  const std::string file = slurp(path);
  std::vector<ReadEvent> events;
  for (size_t at = 0; at < file.size();) {
    const std::string length = take_bytes(file, at, 8);
    EXPECT_EQ(unmask(take_raw<uint32_t>(file, at)), plain_crc32c(length));
    const std::string record = take_bytes(file, at, as_number<uint64_t>(length));
    EXPECT_EQ(unmask(take_raw<uint32_t>(file, at)), plain_crc32c(record));
    ReadEvent event;
    for (const auto& [field, value] : fields_of(record)) {
      if (field == 1) event.time = as_number<double>(value);
      if (field == 2) event.step = as_number<int64_t>(value);
      if (field == 3) event.version = value;
      if (field == 7) event.starts = as_number<uint64_t>(fields_of(value).find(1)->second) == 1;
      if (field != 5) continue;
      for (const auto& [number, entry] : fields_of(value)) {
        EXPECT_EQ(number, 1U);
        const auto parts = fields_of(entry);
        event.scalars[parts.find(1)->second] = as_number<float>(parts.find(2)->second);
      }
    }
    events.push_back(event);
  }
  return events;
}

// Event files of a run folder in the order in which TensorBoard reads them: by name.
inline std::vector<std::string> event_files(const std::string& run) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    if (entry.path().filename().string().rfind("events.out.tfevents.", 0) == 0) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// What TensorBoard shows of a run (event_accumulator.py): a start discards what was logged before
// for its step and later ones.
inline std::vector<ReadEvent> shown_events(const std::string& run) {
  std::vector<ReadEvent> shown;
  for (const std::string& file : event_files(run)) {
    for (const ReadEvent& event : read_events(file)) {
      const auto is_void = [&](const ReadEvent& old) { return old.step >= event.step; };
      if (event.starts) {
        shown.erase(std::remove_if(shown.begin(), shown.end(), is_void), shown.end());
      }
      if (!event.scalars.empty()) shown.push_back(event);
    }
  }
  return shown;
}

}  // namespace rondo::testing
