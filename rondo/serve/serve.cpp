// The lifetime of a server.
#include "rondo/serve/serve.h"

#include <fmt/format.h>

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

// What a signal does before it ends the process, while this exists and until ServerSignals::hold().
class CleanupAtSignal {
 public:
  CleanupAtSignal(ServerSignals& signals, std::function<void()> clean_up) : signals_(signals) {
    signals_.before_exit(std::move(clean_up));
  }
  ~CleanupAtSignal() { signals_.before_exit(nullptr); }
  CleanupAtSignal(const CleanupAtSignal&) = delete;
  CleanupAtSignal& operator=(const CleanupAtSignal&) = delete;

 private:
  ServerSignals& signals_;
};

// Finishes pending work, unless a second signal arrives.
void finish_work(const ServeOptions& options, Engine& engine, http::Server& server,
                 ServerSignals& signals) {
  log_info("finishing {} running and {} waiting requests, for up to {:g} s", engine.running(),
           engine.queued(), options.limits.drain_seconds);
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(options.limits.drain_seconds));
  while (Clock::now() < until) {
    if (engine.drain(0.05)) break;
    if (signals.wait(0)) break;
  }
  engine.stop();
  server.retire();
  // Responses on their way to clients.
  for (int i = 0; i < 40 && server.connections() > 0; ++i) signals.wait(0.05);
}

}  // namespace

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

void serve(const ServeOptions& options, ServerSignals& signals) {
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
  const CleanupAtSignal cleanup(signals, [&] {
    server.stop();
    api.remove_temporary_files();
    log_info("stopped while models were loading");
  });
  ServedModels models = load_models(options.runs, options.models, metrics);
  states.restore([&](const std::string& path) -> std::optional<SavedState> {
    return load_state_file(models, path);
  });
  signals.hold();
  for (const ServedLanguageModel* model : models.all_language()) engine.add(*model->scheduler);
  for (const auto& model : models.translation) engine.add(*model->batcher);
  for (const auto& model : models.image) engine.add(*model->batcher);
  engine.start();
  api.serve(models, [&server] { return server.connections(); });
  fmt::print("{}\n", server.address());
  std::fflush(stdout);
  while (!signals.wait(3600)) {
  }
  finish_work(options, engine, server, signals);
  api.stop();
  server.stop();
}

}  // namespace rondo::serve
