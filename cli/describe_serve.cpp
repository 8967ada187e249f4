// Options of rondo serve.
#include "cli/describe_common.h"
#include "cli/serve_options.h"

namespace rondo::cli {
namespace {

constexpr double kMostBytes = static_cast<double>(int64_t{1} << 50);
constexpr double kMostSeconds = 1e6;

void describe_http_limits(OptionVisitor& v, ServeVerb& o) {
  v.option("--header-bytes", o.header_bytes, "maximum size of request line and header fields",
           between(1024, 1 << 20));
  v.option("--header-fields", o.header_fields, "maximum number of header fields",
           between(8, 10000));
  v.option("--header-seconds", o.header_seconds, "time limit for receiving a header",
           between(0.01, kMostSeconds));
  v.option("--body-idle-seconds", o.body_idle_seconds, "time limit between bytes of a request body",
           between(0.01, kMostSeconds));
  v.option("--write-stall-seconds", o.write_stall_seconds,
           "time limit for a client that stops reading", between(0.01, kMostSeconds));
  v.option("--keep-alive-seconds", o.keep_alive_seconds,
           "time limit between two requests on a connection", between(0.01, kMostSeconds));
  v.option("--connections", o.connections, "maximum open connections", between(1, 1 << 20));
  v.option("--connections-per-address", o.connections_per_address,
           "maximum open connections from one address", between(1, 1 << 20));
  v.option("--text-bytes", o.text_bytes, "maximum size of a text body", between(1, kMostBytes));
  v.option("--image-bytes", o.image_bytes, "maximum size of an image body", between(1, kMostBytes));
  v.option("--image-pixels", o.image_pixels, "maximum pixels of an image", between(1, kMostBytes));
  v.option("--image-side", o.image_side, "maximum pixels of a side of an image",
           between(1, 1 << 20));
  v.option("--json-depth", o.json_depth, "maximum nesting of a JSON body", between(1, 1000));
  v.option("--state-file-bytes", o.state_file_bytes, "maximum size of an uploaded state file",
           between(1, kMostBytes));
}

}  // namespace

void describe(OptionVisitor& v, ServeVerb& o) {
  v.argument("runs", o.runs, "run folders or model files, each RUN or NAME=RUN");
  v.option("--listen", o.listen, "ADDRESS:PORT (port 0: any free port), or unix:PATH");
  v.option("--api-key-file", o.api_key_file,
           "file of API keys, one per line; clients must send one of them");
  v.flag("--insecure-no-auth", o.no_auth, "accept other machines without an API key");
  v.option("--state-folder", o.state_folder, "folder for saved states; default: memory only");
  v.option("--tokenizer", o.tokenizer, kTokenizerHelp);
  v.option("--precision", o.precision,
           "precision of the linear layers' weights (image models: always fp32)",
           one_of({"fp32", "bf16", "int8"}));
  v.list("--loops", o.loops,
         "language models that reuse blocks: also serve these numbers of loops (recursive) or "
         "levels (ring, universal), for requests with `loops`");
  describe(v, o.load);
  describe(v, o.compute);
  v.option("--running", o.running, "maximum sequences computed concurrently", between(1, 4096));
  v.option("--queue", o.queue, "maximum queued requests; more are rejected (429)",
           between(0, 1 << 20));
  v.option("--queue-seconds", o.queue_seconds, "time limit for a request in the queue (503)",
           between(0.01, kMostSeconds));
  v.option("--request-seconds", o.request_seconds, "time limit for a request",
           between(0.01, kMostSeconds));
  v.option("--drain-seconds", o.drain_seconds, "time limit for finishing requests after SIGTERM",
           between(0, kMostSeconds));
  v.option("--max-tokens", o.max_tokens, "maximum tokens a request may ask for",
           between(1, 1 << 30));
  v.option("--default-tokens", o.default_tokens, "tokens to generate if a request does not say",
           between(1, 1 << 30));
  v.option("--prompt-tokens", o.prompt_tokens, "maximum tokens of a prompt", between(1, 1 << 30));
  v.option("--choices", o.choices, "maximum choices per prompt (n)", between(1, 4096));
  v.option("--beam", o.beam, "maximum beam size of a translation", between(1, 1000));
  v.option("--lines", o.lines, "maximum lines of a translation request", between(1, 1 << 20));
  v.option("--states", o.states, "maximum saved states; the least recently used are evicted",
           between(1, 1 << 20));
  v.option("--state-bytes", o.state_bytes, "maximum memory for saved states",
           between(1, kMostBytes));
  v.option("--state-ttl", o.state_ttl, "seconds after which unused states expire; 0 = never",
           between(0, 1e9));
  describe_http_limits(v, o);
}

}  // namespace rondo::cli
