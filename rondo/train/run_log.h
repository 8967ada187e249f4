// The log of a run in its folder: metrics.jsonl, one line per logged step or evaluation, and the
// same as TensorBoard events. A failed write does not end the run, but is reported.
#pragma once

#include <memory>

#include "rondo/base/throttle.h"
#include "rondo/train/tensorboard.h"

namespace rondo {

// Where a run resumes.
struct RunPlace {
  int64_t step = 0;             // the last completed one
  bool evaluation_due = false;  // the run was stopped before its evaluation
};

class RunLog {
 public:
  // Drops lines of steps after `place`, which a killed run wrote and will write again, and opens an
  // event file that tells TensorBoard to do the same. Error{io} if an existing log cannot be read;
  // nothing is changed then.
  RunLog(const std::string& folder, const RunPlace& place);

  // Appends to both files in `folder`. On failure, warns at most once a minute.
  void write(const std::string& folder, int64_t step, const std::map<std::string, double>& values);

 private:
  std::unique_ptr<EventWriter> events_;
  Throttle warnings_{std::chrono::seconds(60)};
};

}  // namespace rondo
