// Limits on what a server accepts from clients, and timeouts.
#pragma once

#include <cstdint>

namespace rondo::http {

struct Limits {
  int64_t header_bytes = 16 << 10;  // request line and header fields → 431
  int64_t header_fields = 100;
  double header_seconds = 5;  // from the first byte of a request to the end of its header → 408
  double body_idle_seconds = 10;    // without a byte of the body → 408
  double write_stall_seconds = 20;  // without the client accepting a byte: closed
  double keep_alive_seconds = 30;   // between two requests: closed
  double request_seconds = 600;     // of the body, and of computing the response
  double queue_seconds = 30;        // before that begins
  int64_t json_depth = 32;          // of a body → 400
  int64_t connections = 1024;       // concurrent
  int64_t connections_per_address = 64;
};

// An uploaded document that is read faster than it can be processed pauses its connection: the
// client is not at fault.
constexpr double kPausedSeconds = 24 * 3600.0;

// After rejecting a request that is still being sent, read this much more, so that the client sees
// the response before the connection is reset.
constexpr int64_t kLingerBytes = 64 << 10;
constexpr double kLingerSeconds = 1;

}  // namespace rondo::http
