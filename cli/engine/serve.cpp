// rondo serve: models over HTTP.
#include "rondo/serve/serve.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/server_signals.h"
#include "rondo/base/text.h"

namespace rondo::cli {
namespace {

serve::Limits serve_limits(const ServeVerb& o) {
  serve::Limits l;
  l.running = l.completion.max_sequences = o.running;
  l.queue = o.queue;
  l.http.queue_seconds = o.queue_seconds;
  l.http.request_seconds = o.request_seconds;
  l.drain_seconds = o.drain_seconds;
  l.completion.max_tokens = o.max_tokens;
  l.completion.default_tokens = o.default_tokens;
  l.completion.max_prompt_tokens = o.prompt_tokens;
  l.completion.max_choices = o.choices;
  l.beam = o.beam;
  l.text_bytes = o.text_bytes;
  l.image_bytes = o.image_bytes;
  l.image_pixels = o.image_pixels;
  l.image_side = o.image_side;
  l.http.json_depth = o.json_depth;
  l.state_file_bytes = o.state_file_bytes;
  l.lines = o.lines;
  l.states = o.states;
  l.state_bytes = o.state_bytes;
  l.state_ttl_seconds = o.state_ttl;
  l.http.header_bytes = o.header_bytes;
  l.http.header_fields = o.header_fields;
  l.http.header_seconds = o.header_seconds;
  l.http.body_idle_seconds = o.body_idle_seconds;
  l.http.write_stall_seconds = o.write_stall_seconds;
  l.http.keep_alive_seconds = o.keep_alive_seconds;
  l.http.connections = o.connections;
  l.http.connections_per_address = o.connections_per_address;
  return l;
}

std::vector<int64_t> loop_numbers(const std::vector<std::string>& given) {
  std::vector<int64_t> numbers;
  for (const std::string& text : given) {
    int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end || number < 1) {
      throw Error(
          ExitCode::usage,
          fmt::format("--loops: expected whole numbers of at least 1, got '{}'", printable(text)),
          "for example --loops 4,6");
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

void run_serve(const ServeVerb& options) {
  serve::ServeOptions s;
  s.runs = options.runs;
  s.listen = options.listen;
  s.api_key_file = options.api_key_file;
  s.no_auth = options.no_auth;
  s.state_folder = options.state_folder;
  s.models.tokenizer = options.tokenizer;
  s.models.weights = options.precision;
  s.models.verify = verify_as(options.load);
  s.models.loops = loop_numbers(options.loops);
  s.limits = serve_limits(options);
  serve::check_serve_options(s);
  block_server_signals();
  ServerSignals signals;
  start_engine(options.compute);
  serve::serve(s, signals);
}

}  // namespace rondo::cli
