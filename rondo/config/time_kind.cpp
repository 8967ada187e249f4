// The table of kinds of time, and the checks of built-in ones.
#include "rondo/config/time_kind.h"

#include <fmt/format.h>

namespace rondo {
namespace {

void require_layer(int64_t layer, int64_t levels, const char* key, const ConfigCheck& check) {
  check.require(
      layer <= levels,
      fmt::format("model.time.{}: expected a layer from 1 to {}, got {}", key, levels, layer),
      "choose a layer of the stack");
}

TimeKind all_tokens() {
  TimeKind kind;
  kind.name = "none";
  return kind;
}

TimeKind window() {
  TimeKind kind;
  kind.name = "window";
  kind.by_blocks = true;
  return kind;
}

TimeKind recurrent(const char* name) {
  TimeKind kind = window();
  kind.name = name;
  kind.own_layers = [](const TimeConfig& time) { return time.recurrent_layers; };
  kind.check = [](const LanguageModelConfig& c, int64_t levels, const ConfigCheck& check) {
    check.require(!c.time.recurrent_layers.empty(),
                  "model.time.recurrent_layers: expected at least one layer, got none",
                  "list at least one layer, counted from 1");
    for (const int64_t layer : c.time.recurrent_layers) {
      require_layer(layer, levels, "recurrent_layers", check);
    }
  };
  return kind;
}

TimeKind memorizing() {
  TimeKind kind = window();
  kind.name = "memorizing";
  kind.own_layers = [](const TimeConfig& time) { return std::vector<int64_t>{time.memory_layer}; };
  kind.check = [](const LanguageModelConfig& c, int64_t levels, const ConfigCheck& check) {
    require_layer(c.time.memory_layer, levels, "memory_layer", check);
  };
  return kind;
}

std::list<TimeKind> own_kinds() {
  return {
      all_tokens(), window(), recurrent("block-recurrent"), recurrent("feedback"), memorizing(),
  };
}

}  // namespace

Registry<TimeKind>& time_kinds() {
  static Registry<TimeKind> kinds("model.time.kind", own_kinds());
  return kinds;
}

std::vector<std::string> time_kind_names() { return time_kinds().names(); }

}  // namespace rondo
