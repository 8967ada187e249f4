// The kinds of time, their half that needs torch: which token mixing each level of a language model
// has. The half that needs none, name and checks, is rondo/config/time_kind.h; both tables have the
// same names. State, reset and decoding are the mixing's own (rondo/recurrence/mixing.h).
#pragma once

#include "rondo/config/time_kind.h"
#include "rondo/recurrence/mixing.h"

namespace rondo {

// The token mixing of `level` (from 0), with weights undefined until they are drawn or loaded.
using MakeTimeMixing = std::shared_ptr<TokenMixing> (*)(const LanguageModelConfig& config,
                                                        int64_t level);

struct TimeMixing {
  std::string name;  // model.time.kind
  MakeTimeMixing make = nullptr;
};

Registry<TimeMixing>& time_mixings();

// A kind of time, both halves, for as long as this object lives: how a program that uses the
// library adds its own.
class TimeKindRegistration {
 public:
  TimeKindRegistration(const TimeKind& kind, MakeTimeMixing make)
      : kind_(time_kinds(), kind), mixing_(time_mixings(), {kind.name, make}) {}

 private:
  Registration<TimeKind> kind_;
  Registration<TimeMixing> mixing_;
};

// Rondo's own: in window.cpp, block_recurrent.cpp and memorizing.cpp.
std::shared_ptr<TokenMixing> make_all_tokens(const LanguageModelConfig& config, int64_t level);
std::shared_ptr<TokenMixing> make_window(const LanguageModelConfig& config, int64_t level);
std::shared_ptr<TokenMixing> make_block_recurrent(const LanguageModelConfig& config, int64_t level);
std::shared_ptr<TokenMixing> make_feedback(const LanguageModelConfig& config, int64_t level);
std::shared_ptr<TokenMixing> make_memorizing(const LanguageModelConfig& config, int64_t level);

}  // namespace rondo
