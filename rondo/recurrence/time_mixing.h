// The torch half of the kinds of time: which token mixing each level of a language model uses. The
// half without torch, names and checks, is rondo/config/time_kind.h; both tables have the same
// names. State, reset and decoding belong to the mixing (rondo/recurrence/mixing.h).
#pragma once

#include "rondo/config/time_kind.h"
#include "rondo/recurrence/mixing.h"

namespace rondo {

// The token mixing of `level` (0-based), its weights undefined until initialized or loaded.
using MakeTimeMixing = std::shared_ptr<TokenMixing> (*)(const LanguageModelConfig& config,
                                                        int64_t level);

struct TimeMixing {
  std::string name;  // model.time.kind
  MakeTimeMixing make = nullptr;
};

Registry<TimeMixing>& time_mixings();

// Registers both halves of a kind of time for the lifetime of this object: how programs that use
// the library add their own.
class TimeKindRegistration {
 public:
  TimeKindRegistration(const TimeKind& kind, MakeTimeMixing make)
      : kind_(time_kinds(), kind), mixing_(time_mixings(), {kind.name, make}) {}

 private:
  Registration<TimeKind> kind_;
  Registration<TimeMixing> mixing_;
};

// Built-in kinds, defined in window.cpp, block_recurrent.cpp and memorizing.cpp.
std::shared_ptr<TokenMixing> make_all_tokens(const LanguageModelConfig& config, int64_t level);
std::shared_ptr<TokenMixing> make_window(const LanguageModelConfig& config, int64_t level);
std::shared_ptr<TokenMixing> make_block_recurrent(const LanguageModelConfig& config, int64_t level);
std::shared_ptr<TokenMixing> make_feedback(const LanguageModelConfig& config, int64_t level);
std::shared_ptr<TokenMixing> make_memorizing(const LanguageModelConfig& config, int64_t level);

}  // namespace rondo
