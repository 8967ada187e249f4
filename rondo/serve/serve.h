// Serves trained models over HTTP until a signal arrives.
#pragma once

#include <string>
#include <vector>

#include "rondo/base/server_signals.h"
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
// immediately. While models are loading, the first one ends the process, with exit code 0.
void serve(const ServeOptions& options, ServerSignals& signals);

}  // namespace rondo::serve
