// The lifetime of a server.
#include "rondo/serve/serve.h"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <cstdio>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/http/server.h"
#include "rondo/serve/api.h"

namespace rondo::serve {
namespace {

constexpr int64_t kMaxKeyFileBytes = 1 << 16;
constexpr size_t kShortestKey = 16;

sigset_t stop_signals() {
  sigset_t set = {};
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// The signal received, or 0 after `seconds`.
int wait_for_signal(double seconds) {
  const sigset_t set = stop_signals();
  timespec time = {};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
  const int signal = sigtimedwait(&set, nullptr, &time);
  return signal > 0 ? signal : 0;
}

std::vector<std::string> read_keys(const std::string& path) {
  if (path.empty()) return {};
  const std::vector<std::string> keys = text_lines(read_text_file(path, kMaxKeyFileBytes));
  for (const std::string& key : keys) {
    if (key.size() < kShortestKey) {
      throw Error(ExitCode::usage,
                  fmt::format("{}: expected keys of at least {} characters, one per line", path,
                              kShortestKey),
                  "make one with: openssl rand -hex 24");
    }
  }
  if (keys.empty()) throw Error(ExitCode::usage, fmt::format("{}: contains no key", path));
  return keys;
}

// Finishes pending work, unless a second signal arrives.
void finish_work(const ServeOptions& options, Engine& engine, http::Server& server) {
  log_info("finishing {} running and {} waiting requests, for up to {:g} s", engine.running(),
           engine.queued(), options.limits.drain_seconds);
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(options.limits.drain_seconds));
  while (Clock::now() < until) {
    if (engine.drain(0.05)) break;
    if (wait_for_signal(0) != 0) break;
  }
  engine.stop();
  server.retire();
  // Responses on their way to clients.
  for (int i = 0; i < 40 && server.connections() > 0; ++i) wait_for_signal(0.05);
}

}  // namespace

void block_stop_signals() {
  std::signal(SIGPIPE, SIG_IGN);  // the reader of our messages may have exited
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void check_serve_options(const ServeOptions& options) {
  const http::Listen listen = http::parse_listen(options.listen);
  if (!listen.loopback() && options.api_key_file.empty() && !options.no_auth) {
    throw Error(
        ExitCode::usage,
        fmt::format("--listen {}: other machines could use the server", options.listen),
        "require a key with --api-key-file FILE, or allow everyone with --insecure-no-auth");
  }
  read_keys(options.api_key_file);
}

void serve(const ServeOptions& options) {
  check_serve_options(options);
  const http::Listen listen = http::parse_listen(options.listen);
  Metrics metrics;
  StateStore states(options.limits, options.state_folder);
  Engine engine(options.limits);
  ApiOptions api_options;
  api_options.keys = read_keys(options.api_key_file);
  api_options.loopback_names_only = listen.loopback() && listen.unix_path.empty();
  Api api(options.limits, engine, states, metrics, api_options);
  http::Server server(listen, options.limits.http, api);  // answers 503 while models are loading
  ServedModels models = load_models(options.runs, options.models, metrics);
  states.restore([&](const std::string& path) -> std::optional<SavedState> {
    return load_state_file(models, path);
  });
  for (const auto& model : models.language) engine.add(*model->scheduler);
  for (const auto& model : models.translation) engine.add(*model->batcher);
  for (const auto& model : models.image) engine.add(*model->batcher);
  engine.start();
  api.serve(models, [&server] { return server.connections(); });
  fmt::print("{}\n", server.address());
  std::fflush(stdout);
  while (wait_for_signal(3600) == 0) {
  }
  finish_work(options, engine, server);
  api.stop();
  server.stop();
}

}  // namespace rondo::serve
