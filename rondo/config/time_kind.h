// Kinds of time: how a level of a language model sees the past. This is the torch-free half, the
// name and checks, so that a configuration is validated before anything is loaded. The other half
// builds the token mixing: rondo/recurrence/time_mixing.h.
#pragma once

#include "rondo/base/registry.h"
#include "rondo/config/config_check.h"
#include "rondo/config/model_config.h"

namespace rondo {

struct TimeKind {
  std::string name;  // model.time.kind
  // Layers, counted from 1, with something the others lack (a recurrent state, a memory), which
  // therefore share no weights with them; null: none.
  std::vector<int64_t> (*own_layers)(const TimeConfig& time) = nullptr;
  // Additional checks, for a stack of `levels`; null: none.
  void (*check)(const LanguageModelConfig& config, int64_t levels,
                const ConfigCheck& check) = nullptr;
  // Tokens are processed in blocks of one window: segments must be a multiple of it.
  bool by_blocks = false;
};

Registry<TimeKind>& time_kinds();

}  // namespace rondo
