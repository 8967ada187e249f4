// Progress of long operations on stderr: a bar with rate and time left on a terminal, otherwise one
// plain line per interval to keep log files readable.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rondo {

struct ProgressOptions {
  std::function<double()> clock;               // seconds, monotonic; default: steady_clock
  std::function<void(std::string_view)> sink;  // receives raw output; default: stderr
  std::optional<bool> terminal;                // default: whether stderr is a terminal
  double interval = 10.0;                      // seconds between lines when not a terminal
  int64_t columns = 0;                         // width of the bar; 0: ask the terminal
  int64_t initial = 0;                         // already done at the start, as after a resume
  double delay = 0;        // seconds before anything is shown; shorter work shows nothing
  bool transient = false;  // the bar is erased when it ends
};

// For work that is usually quick, such as opening data: shown after 2 seconds, erased at the end.
ProgressOptions loading_progress();

// Not thread-safe: update from one thread. Updates are cheap; draws at most ten times a second.
class Progress {
 public:
  // total <= 0 means unknown: shows only the count and the rate.
  Progress(std::string label, int64_t total, ProgressOptions options = {});
  ~Progress();  // leaves a started bar on its own line; never throws
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` units are complete; `note` ("loss 2.31") ends the line.
  void update(int64_t done, std::string_view note = {});

  // Shows the final state and the elapsed time. Later calls do nothing.
  void finish();

 private:
  void draw(double now, bool last);
  std::string line(double now, bool last) const;
  double rate() const;  // units per second, weighted toward recent work; 0 while unknown

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
  double recent_done_ = 0;  // exponentially decaying sums; their ratio is the rate
  double recent_time_ = 0;
};

// Clears the current bar, if any; the next update redraws it. For log.cpp.
void clear_progress_line();

}  // namespace rondo
