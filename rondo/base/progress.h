// Progress of long work, on stderr: a bar with rate and time left on a terminal, else one plain
// line per interval, so that a log file stays readable.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rondo {

struct ProgressOptions {
  std::function<double()> clock;               // seconds, monotonic; default: steady_clock
  std::function<void(std::string_view)> sink;  // takes raw output; default: stderr
  std::optional<bool> terminal;                // default: whether stderr is one
  double interval = 10.0;                      // seconds between lines when not a terminal
  int64_t columns = 0;                         // width of the bar; 0: ask the terminal
  int64_t initial = 0;                         // done before we began, as after a resume
  double delay = 0;        // seconds before anything is shown; what ends sooner shows nothing
  bool transient = false;  // a bar leaves no trace when it ends
};

// Not thread-safe: one thread updates. Cheap to update often; it draws at most ten times a second.
class Progress {
 public:
  // total <= 0 means unknown: then no bar and no time left, just the count and the rate.
  Progress(std::string label, int64_t total, ProgressOptions options = {});
  ~Progress();  // leaves a started bar on its own line; never throws
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` units are complete; `note` ("loss 2.31") stands at the end of the line.
  void update(int64_t done, std::string_view note = {});

  // Shows the final state with the time taken, once. Later calls do nothing.
  void finish();

 private:
  void draw(double now, bool last);
  std::string line(double now, bool last) const;
  double rate() const;  // units per second, recent work weighing most; 0 while unknown

  std::string label_;
  int64_t total_;
  ProgressOptions options_;
  bool terminal_;
  bool to_stderr_;
  bool finished_ = false;
  bool drawn_ = false;  // a bar is on the current terminal line
  int64_t done_;
  std::string note_;
  double start_;      // seconds
  double last_draw_;  // seconds
  double last_update_;
  double recent_done_ = 0;  // exponentially fading sums; their quotient is the rate
  double recent_time_ = 0;
};

// Wipes the bar that is on the terminal now, if any; the next update draws it again. For log.cpp.
void clear_progress_line();

}  // namespace rondo
