// The kinds of time: what a level of a language model sees of the past. This is the half of a kind
// that needs no torch, so that a configuration is checked before anything is loaded: its name and
// its checks. The other half builds its token mixing: rondo/recurrence/time_mixing.h.
#pragma once

#include "rondo/base/registry.h"
#include "rondo/config/config_check.h"
#include "rondo/config/model_config.h"

namespace rondo {

struct TimeKind {
  std::string name;  // model.time.kind
  // Layers, counted from 1, that keep something the others do not (a recurrent state, a memory) and
  // so share no weights with them; null: there are none.
  std::vector<int64_t> (*own_layers)(const TimeConfig& time) = nullptr;
  // Checks of its own, for a stack of `levels`; null: none.
  void (*check)(const LanguageModelConfig& config, int64_t levels,
                const ConfigCheck& check) = nullptr;
  // Tokens are seen in blocks of a window: segments must be whole ones.
  bool by_blocks = false;
};

Registry<TimeKind>& time_kinds();

}  // namespace rondo
