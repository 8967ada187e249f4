// The engine's interface: finds the verb, decodes its options, converts exceptions to a message.
#include <fmt/format.h>

#include <exception>
#include <functional>
#include <map>
#include <string>

#include "cli/engine/engine_verbs.h"
#include "cli/engine_interface.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "rondo/base/text.h"

namespace rondo::cli {
namespace {

using RunVerb = std::function<int(std::string_view options)>;

template <class Options>
RunVerb verb_of(void (*run)(const Options&)) {
  return [run](std::string_view text) {
    run(decode_options<Options>(text));
    return 0;
  };
}

template <class Options>
RunVerb verb_of(int (*run)(const Options&)) {
  return [run](std::string_view text) { return run(decode_options<Options>(text)); };
}

const std::map<std::string, RunVerb>& engine_verbs() {
  static const std::map<std::string, RunVerb> verbs = {
      {"average", verb_of(&run_average)},
      {"bench", verb_of(&run_bench)},
      {"classify", verb_of(&run_classify)},
      {"compare", verb_of(&run_compare)},
      {"doctor", verb_of(&run_doctor)},
      {"eval", verb_of(&run_eval)},
      {"export", verb_of(&run_export)},
      {"forward", verb_of(&run_forward)},
      {"generate", verb_of(&run_generate)},
      {"import", verb_of(&run_import)},
      {"info", verb_of(&run_info)},
      {"serve", verb_of(&run_serve)},
      {"state fork", verb_of(&run_state_fork)},
      {"state info", verb_of(&run_state_info)},
      {"state read", verb_of(&run_state_read)},
      {"study", verb_of(&run_study)},
      {"train", verb_of(&run_train)},
      {"translate", verb_of(&run_translate)},
  };
  return verbs;
}

std::string& last_error() {
  static std::string error;
  return error;
}

int run_engine_verb(const std::string& verb, std::string_view options) {
  const auto found = engine_verbs().find(verb);
  if (found == engine_verbs().end()) {
    throw Error(ExitCode::failure, fmt::format("the engine has no verb '{}'", printable(verb)),
                "rondo and librondo_engine.so have different versions: rebuild both");
  }
  return found->second(options);
}

}  // namespace
}  // namespace rondo::cli

const char* rondo_engine_version() {
  static const std::string version =
      fmt::format("{}, interface {}", rondo::kVersion, rondo::cli::kEngineInterface);
  return version.c_str();
}

int rondo_engine_run(const char* verb, const char* options, uint64_t bytes) {
  using namespace rondo::cli;
  last_error().clear();
  try {
    return run_engine_verb(verb, {options, static_cast<size_t>(bytes)});
  } catch (const std::exception&) {
    const Failure failure = current_failure();
    last_error() = failure.text;
    return static_cast<int>(failure.code);
  }
}

const char* rondo_engine_error() { return rondo::cli::last_error().c_str(); }
