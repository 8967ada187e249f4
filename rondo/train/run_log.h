// What a run says of itself in its folder: metrics.jsonl, one line per logged step or evaluation,
// and the same as TensorBoard events. Lines that cannot be written do not end a run, but are not
// lost in silence either.
#pragma once

#include <memory>

#include "rondo/base/throttle.h"
#include "rondo/train/tensorboard.h"

namespace rondo {

// Where a run goes on.
struct RunPlace {
  int64_t step = 0;             // the last one done
  bool evaluation_due = false;  // it was to be evaluated, but the run was stopped before
};

class RunLog {
 public:
  // Drops lines of steps after `place`, which a killed run wrote but will write again, and opens an
  // event file that tells TensorBoard to do the same. Error{io} if a log that is there cannot be
  // read; nothing is changed then.
  RunLog(const std::string& folder, const RunPlace& place);

  // Appends to both files of `folder`. A warning at most once a minute if that fails.
  void write(const std::string& folder, int64_t step, const std::map<std::string, double>& values);

 private:
  std::unique_ptr<EventWriter> events_;
  Throttle warnings_{std::chrono::seconds(60)};
};

}  // namespace rondo
