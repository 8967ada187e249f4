// The numbers of a run that survive a restart: text of a checkpoint.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace rondo {

struct Counters {
  int64_t step = 0;
  int64_t skipped = 0;          // steps whose loss was not finite
  int64_t in_a_row = 0;         // of them, the last ones
  double best = INFINITY;       // selection of the best model so far
  int64_t since_best = 0;       // evaluations since then
  bool evaluation_due = false;  // of this step: a signal came before it, or in the middle
  double seconds = 0;           // of training, over all starts

  std::string dump() const;
  // Error{bad_input} naming `source` if the text is not what dump() writes.
  static Counters parse(const std::string& text, const std::string& source);
};

}  // namespace rondo
