// Fuzz target for the code that reads clients' requests: targets, JSON bodies of every endpoint,
// forms, and text that is sent back. Only ApiError may be thrown.
//
// The first byte of the input selects which of them reads the rest.
#include <cstddef>
#include <cstdint>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/http/completion_request.h"
#include "rondo/http/limits.h"
#include "rondo/http/target.h"
#include "rondo/http/text_output.h"

namespace {

using namespace rondo::http;

void read_form(std::string_view text) {
  const size_t cut = text.find('\n');
  if (cut == std::string_view::npos) return;
  const std::string_view body = text.substr(cut + 1);
  for (const auto& [name, part] : parse_multipart(std::string(text.substr(0, cut)), body)) {
    RONDO_ASSERT(part.data() >= body.data() &&
                 part.data() + part.size() <= body.data() + body.size());
  }
}

void read_target(std::string_view text) {
  Request request;
  request.target = std::string(text);
  parse_target(request);
}

void write_text(std::string_view text) {
  TextOutput whole({"stop", "s"});
  std::string together = whole.push(text);
  together += whole.finish();
  RONDO_ASSERT(rondo::valid_utf8(together));
  TextOutput pieces({"stop", "s"});
  std::string joined;
  for (const char c : text) joined += pieces.push({&c, 1});
  joined += pieces.finish();
  RONDO_ASSERT(joined == together);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 5) {
      case 0:
        read_target(text);
        break;
      case 1:
        read_completion(parse_json(text, Limits().json_depth), CompletionLimits());
        break;
      case 2:
        read_chat(parse_json(text, Limits().json_depth), CompletionLimits());
        break;
      case 3:
        read_form(text);
        break;
      default:
        write_text(text);
    }
  } catch (const ApiError& error) {
    RONDO_ASSERT(error.status() >= 400 && error.status() < 500 && rondo::valid_utf8(error.json()));
  }
  return 0;
}
