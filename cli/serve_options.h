// Options of `rondo serve`.
#pragma once

#include "cli/verbs.h"

namespace rondo::cli {

struct ServeVerb {
  std::vector<std::string> runs;
  std::string listen = "127.0.0.1:8080";
  std::string api_key_file;
  bool no_auth = false;
  std::string state_folder;
  std::string tokenizer;
  std::string precision = "fp32";
  std::vector<std::string> loops;
  LoadOptions load;
  ComputeOptions compute;
  // Limits (rondo/serve/limits.h).
  int64_t running = 16;
  int64_t queue = 64;
  double queue_seconds = 30;
  double request_seconds = 600;
  double drain_seconds = 30;
  int64_t max_tokens = 65536;
  int64_t default_tokens = 256;
  int64_t prompt_tokens = 1 << 20;
  int64_t choices = 8;
  int64_t beam = 32;
  int64_t text_bytes = 8 << 20;
  int64_t image_bytes = 16 << 20;
  int64_t image_pixels = 50'000'000;
  int64_t image_side = 16384;
  int64_t state_file_bytes = int64_t{1} << 30;
  int64_t lines = 1024;
  int64_t states = 256;
  int64_t state_bytes = int64_t{1} << 30;
  double state_ttl = 0;
  int64_t json_depth = 32;
  int64_t header_bytes = 16 << 10;
  int64_t header_fields = 100;
  double header_seconds = 5;
  double body_idle_seconds = 10;
  double write_stall_seconds = 20;
  double keep_alive_seconds = 30;
  int64_t connections = 1024;
  int64_t connections_per_address = 64;
};

void describe(OptionVisitor& v, ServeVerb& o);

}  // namespace rondo::cli
