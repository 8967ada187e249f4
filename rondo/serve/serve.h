// Serving trained models over HTTP until a signal ends it.
#pragma once

#include <string>
#include <vector>

#include "rondo/serve/limits.h"
#include "rondo/serve/served_models.h"

namespace rondo::serve {

struct ServeOptions {
  std::vector<std::string> runs;  // RUN, or NAME=RUN
  std::string listen = "127.0.0.1:8080";
  std::string api_key_file;  // a key a line
  bool no_auth = false;      // listen to others without a key
  std::string state_folder;  // "" = states are kept in memory alone
  ModelOptions models;
  Limits limits;
};

// Throws at once, before any model is loaded, what is wrong with the address or the keys.
void check_serve_options(const ServeOptions& options);

// Prints the address on stdout once all models are loaded. SIGTERM and SIGINT end it: no new work,
// what runs is finished within Limits::drain_seconds; a second one ends it at once. Must be called
// on the process's first thread, before others are started, since signals are waited for here.
void serve(const ServeOptions& options);

// Blocks SIGTERM and SIGINT in this thread and those started later, for serve() to wait for, and
// ignores SIGPIPE.
// (A handler could not be used: oneDNN's products use the stack pointer for something else.)
void block_stop_signals();

}  // namespace rondo::serve
