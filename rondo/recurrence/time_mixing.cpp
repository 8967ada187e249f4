// The table of token mixings by kind of time.
#include "rondo/recurrence/time_mixing.h"

namespace rondo {
namespace {

std::list<TimeMixing> own_mixings() {
  return {
      {"none", make_all_tokens},
      {"window", make_window},
      {"block-recurrent", make_block_recurrent},
      {"feedback", make_feedback},
      {"memorizing", make_memorizing},
  };
}

}  // namespace

Registry<TimeMixing>& time_mixings() {
  static Registry<TimeMixing> mixings("model.time.kind", own_mixings());
  return mixings;
}

}  // namespace rondo
