// TensorBoard's record and protobuf encoding.
#include "rondo/train/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "rondo/base/append_file.h"
#include "rondo/base/error.h"

namespace rondo {
namespace {

constexpr std::array<uint32_t, 256> crc32c_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1U) != 0 ? (c >> 1) ^ 0x82F63B78U : c >> 1;
    table[i] = c;
  }
  return table;
}

// Protobuf wire types.
constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kBytes = 2;
constexpr int kFixed32 = 5;

void put_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void put_key(std::string& out, int field, int wire) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

template <class T>
void put_raw(std::string& out, T value) {  // little-endian only, as everywhere in Rondo
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_bytes(std::string& out, int field, const std::string& value) {
  put_key(out, field, kBytes);
  put_varint(out, value.size());
  out += value;
}

std::string event_head(int64_t step) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  put_key(event, 1, kFixed64);  // wall_time
  put_raw(event, std::chrono::duration<double>(now).count());
  put_key(event, 2, kVarint);  // step
  put_varint(event, static_cast<uint64_t>(step));
  return event;
}

}  // namespace

uint32_t masked_crc32c(const std::string& bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc32c_table();
  uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ (crc >> 8);
  }
  crc ^= 0xFFFFFFFFU;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

EventWriter::EventWriter(const std::string& folder, int64_t first_step) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  // TensorBoard reads files in the order of their names: process ids are zero-padded.
  path_ = fmt::format("{}/events.out.tfevents.{}.rondo.{:07}", folder,
                      std::chrono::duration_cast<std::chrono::seconds>(now).count(), getpid());
  descriptor_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw Error(ExitCode::io, fmt::format("{}: cannot write: {}", path_, std::strerror(errno)));
  }
  std::string version = event_head(first_step);
  put_bytes(version, 3, "brain.Event:2");  // file_version
  std::string status;
  put_key(status, 1, kVarint);
  put_varint(status, 1);  // START
  std::string start = event_head(first_step);
  put_bytes(start, 7, status);   // session_log
  int reason = record(version);  // must be the first record
  if (reason == 0) reason = record(start);
  if (reason != 0) {
    close(descriptor_);
    throw Error(ExitCode::io, fmt::format("{}: cannot write: {}", path_, std::strerror(reason)));
  }
}

EventWriter::~EventWriter() { close(descriptor_); }

int EventWriter::scalars(int64_t step, const std::map<std::string, double>& values) {
  std::string summary;
  for (const auto& [tag, number] : values) {
    std::string value;
    put_bytes(value, 1, tag);
    put_key(value, 2, kFixed32);  // simple_value
    put_raw(value, static_cast<float>(number));
    put_bytes(summary, 1, value);
  }
  std::string event = event_head(step);
  put_bytes(event, 5, summary);
  return record(event);
}

int EventWriter::record(const std::string& event) {
  std::string length;
  put_raw(length, static_cast<uint64_t>(event.size()));
  std::string out = length;
  put_raw(out, masked_crc32c(length));
  out += event;
  put_raw(out, masked_crc32c(event));
  return append_whole(descriptor_, out);  // whole: a partial record would hide all later ones
}

}  // namespace rondo
