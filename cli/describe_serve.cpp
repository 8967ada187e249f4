// Options of rondo serve.
#include "cli/describe_common.h"
#include "cli/serve_options.h"

namespace rondo::cli {
namespace {

constexpr double kMostBytes = static_cast<double>(int64_t{1} << 50);
constexpr double kMostSeconds = 1e6;

void describe_http_limits(OptionVisitor& v, ServeVerb& o) {
  v.option("--header-bytes", o.header_bytes, "request line and header fields",
           between(1024, 1 << 20));
  v.option("--header-fields", o.header_fields, "fields of a header", between(8, 10000));
  v.option("--header-seconds", o.header_seconds, "until a header is complete",
           between(0.01, kMostSeconds));
  v.option("--body-idle-seconds", o.body_idle_seconds, "without a byte of a body",
           between(0.01, kMostSeconds));
  v.option("--write-stall-seconds", o.write_stall_seconds, "without a client reading",
           between(0.01, kMostSeconds));
  v.option("--keep-alive-seconds", o.keep_alive_seconds, "between two requests of a connection",
           between(0.01, kMostSeconds));
  v.option("--connections", o.connections, "at once", between(1, 1 << 20));
  v.option("--connections-per-address", o.connections_per_address, "at once from one address",
           between(1, 1 << 20));
  v.option("--text-bytes", o.text_bytes, "body with text", between(1, kMostBytes));
  v.option("--image-bytes", o.image_bytes, "body with an image", between(1, kMostBytes));
  v.option("--image-pixels", o.image_pixels, "of an image", between(1, kMostBytes));
}

}  // namespace

void describe(OptionVisitor& v, ServeVerb& o) {
  v.argument("runs", o.runs, "run folders or model files, each RUN or NAME=RUN");
  v.option("--listen", o.listen, "ADDRESS:PORT (port 0: any that is free), or unix:PATH");
  v.option("--api-key-file", o.api_key_file,
           "clients must send one of the keys in it, a key a line");
  v.flag("--insecure-no-auth", o.no_auth, "listen to other machines without asking for a key");
  v.option("--state-folder", o.state_folder, "keep saved states in it; default: in memory alone");
  v.option("--tokenizer", o.tokenizer, kTokenizerHelp);
  v.option("--precision", o.precision, "of the weights of linear maps",
           one_of({"fp32", "bf16", "int8"}));
  describe(v, o.load);
  describe(v, o.compute);
  v.option("--running", o.running, "sequences computed at once", between(1, 4096));
  v.option("--queue", o.queue, "requests that wait; more are refused (429)", between(0, 1 << 20));
  v.option("--queue-seconds", o.queue_seconds, "a request waits so long (503)",
           between(0.01, kMostSeconds));
  v.option("--request-seconds", o.request_seconds, "a request takes so long",
           between(0.01, kMostSeconds));
  v.option("--drain-seconds", o.drain_seconds, "to finish requests after SIGTERM",
           between(0, kMostSeconds));
  v.option("--max-tokens", o.max_tokens, "most tokens that a request may ask for",
           between(1, 1 << 30));
  v.option("--default-tokens", o.default_tokens, "tokens when a request does not say",
           between(1, 1 << 30));
  v.option("--prompt-tokens", o.prompt_tokens, "most tokens of a prompt", between(1, 1 << 30));
  v.option("--choices", o.choices, "most texts of a prompt (n)", between(1, 4096));
  v.option("--beam", o.beam, "most hypotheses of a translation", between(1, 1000));
  v.option("--states", o.states, "saved states; the least recently used leave",
           between(1, 1 << 20));
  v.option("--state-bytes", o.state_bytes, "memory of saved states", between(1, kMostBytes));
  v.option("--state-ttl", o.state_ttl, "forget states unused for so many seconds; 0 = never",
           between(0, 1e9));
  describe_http_limits(v, o);
}

}  // namespace rondo::cli
