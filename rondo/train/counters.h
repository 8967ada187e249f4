// The counters of a run that survive a restart, stored as text in a checkpoint.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace rondo {

struct Counters {
  int64_t step = 0;
  int64_t skipped = 0;          // steps whose loss was not finite
  int64_t in_a_row = 0;         // the most recent consecutive ones
  double best = INFINITY;       // selection metric of the best model so far
  int64_t since_best = 0;       // evaluations since the best
  bool evaluation_due = false;  // this step's evaluation has not completed
  double seconds = 0;           // of training, over all restarts

  std::string dump() const;
  // Error{bad_input} naming `source` if the text was not written by dump().
  static Counters parse(const std::string& text, const std::string& source);
};

}  // namespace rondo
