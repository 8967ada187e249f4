// Counters of a server, for /metrics and the page. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace rondo::serve {

struct Metrics {
  std::array<std::atomic<int64_t>, 600> responses{};  // by status
  std::atomic<int64_t> prompt_tokens{0};
  std::atomic<int64_t> cached_tokens{0};
  std::atomic<int64_t> completion_tokens{0};
  std::atomic<int64_t> steps{0};
  std::atomic<int64_t> step_rows{0};
  std::atomic<int64_t> step_microseconds{0};
  std::atomic<int64_t> read_microseconds{0};
  std::atomic<int64_t> abandoned{0};  // requests whose client disconnected
  std::atomic<int64_t> translated_lines{0};
  std::atomic<int64_t> classified_images{0};
};

// Values that are read on demand instead of counted.
struct Gauges {
  int64_t queued = 0;
  int64_t running = 0;
  int64_t connections = 0;
  int64_t states = 0;
  int64_t state_bytes = 0;
};

int64_t resident_bytes();
int64_t open_descriptors();

// In Prometheus text format.
std::string prometheus_text(const Metrics& metrics, const Gauges& gauges);

}  // namespace rondo::serve
