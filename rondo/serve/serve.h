// Serves trained models over HTTP until a signal arrives.
#pragma once

#include <string>
#include <vector>

#include "rondo/serve/limits.h"
#include "rondo/serve/served_models.h"

namespace rondo::serve {

struct ServeOptions {
  std::vector<std::string> runs;  // RUN, or NAME=RUN
  std::string listen = "127.0.0.1:8080";
  std::string api_key_file;  // one key per line
  bool no_auth = false;      // serve other machines without a key
  std::string state_folder;  // "" = states are kept in memory only
  ModelOptions models;
  Limits limits;
};

// Throws an Error for a bad address or key file, before any model is loaded.
void check_serve_options(const ServeOptions& options);

// Prints the address on stdout once all models are loaded. SIGTERM and SIGINT end it: new work is
// refused, pending work is finished within Limits::drain_seconds; a second signal ends it
// immediately. Must be called on the main thread before others are started, since it waits for
// signals.
void serve(const ServeOptions& options);

// Blocks SIGTERM and SIGINT in this thread and those started later, for serve() to wait for, and
// ignores SIGPIPE. (A handler will not do: oneDNN's matmul kernels repurpose the stack pointer.)
void block_stop_signals();

}  // namespace rondo::serve
