// Scalars as TensorBoard event files: length-prefixed, CRC-protected records of the Event protobuf,
// encoded by hand because no packaged library does it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rondo {

class EventWriter {
 public:
  // Creates events.out.tfevents.<unix time>.rondo.<pid> in `folder`. Error{io} on failure. Makes
  // TensorBoard drop events of `first_step` and later steps in earlier files of the folder.
  EventWriter(const std::string& folder, int64_t first_step);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // One event with all scalars of a step. Returns 0, or errno; then nothing was written.
  int scalars(int64_t step, const std::map<std::string, double>& values);
  const std::string& path() const { return path_; }

 private:
  int record(const std::string& event);

  std::string path_;
  int descriptor_ = -1;
};

// The checksum TensorBoard expects: CRC-32C, rotated and offset.
uint32_t masked_crc32c(const std::string& bytes);

}  // namespace rondo
