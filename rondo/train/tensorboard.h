// Scalars as TensorBoard event files: length-prefixed, CRC-protected records of the Event protobuf,
// written by hand because nothing packaged does it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

namespace rondo {

class EventWriter {
 public:
  // Creates events.out.tfevents.<unix time>.rondo.<pid> in `folder`. Error{io} if it cannot.
  explicit EventWriter(const std::string& folder);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // One event with all scalars of a step; flushed so that a viewer sees it.
  void scalars(int64_t step, const std::map<std::string, double>& values);
  const std::string& path() const { return path_; }

 private:
  void record(const std::string& event);

  std::string path_;
  std::FILE* file_ = nullptr;
};

// The checksum TensorBoard expects: CRC-32C, rotated and offset.
uint32_t masked_crc32c(const std::string& bytes);

}  // namespace rondo
