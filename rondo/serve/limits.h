// All limits of a server, with their defaults. /props prints them.
#pragma once

#include "rondo/http/completion_request.h"
#include "rondo/http/limits.h"

namespace rondo::serve {

struct Limits {
  http::Limits http;
  http::CompletionLimits completion;
  int64_t running = 16;          // sequences, translations and images computed at once
  int64_t queue = 64;            // waiting requests → 429
  int64_t text_bytes = 8 << 20;  // of a body → 413
  int64_t image_bytes = 16 << 20;
  int64_t image_pixels = 50'000'000;
  int64_t image_side = 16384;
  int64_t state_file_bytes = int64_t{1} << 30;
  int64_t beam = 32;
  int64_t lines = 1024;  // of a translation request
  int64_t states = 256;
  int64_t state_bytes = int64_t{1} << 30;  // of all saved states
  double state_ttl_seconds = 0;            // 0: kept until space runs out
  double drain_seconds = 30;
};

}  // namespace rondo::serve
