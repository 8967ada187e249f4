// Drawing and timing of progress bars.
#include "rondo/base/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr double kRedrawSeconds = 0.1;  // faster would flicker
constexpr double kRateMemory = 60.0;    // time constant of the rate, in seconds
constexpr int64_t kDefaultColumns = 80;

// Whether the terminal's current line holds a bar. There is one line, hence one flag.
std::atomic<bool> bar_on_stderr{false};

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

void write_to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);  // one call, so lines stay whole
  std::fflush(stderr);
}

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  return ::isatty(STDERR_FILENO) == 1 && !dumb;
}

int64_t terminal_columns() {
  struct winsize size {};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kDefaultColumns;
}

// 65 -> "1:05", 3723 -> "1:02:03", 90061 -> "1d 01:01:01".
std::string duration_text(double seconds) {
  // Capped at a thousand years, which also avoids integer overflow.
  const int64_t total = std::llround(std::clamp(seconds, 0.0, 3.2e10));
  const int64_t days = total / 86400;
  const int64_t hours = total / 3600 % 24;
  const int64_t minutes = total / 60 % 60;
  const int64_t rest = total % 60;
  if (days > 0) {
    return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, rest);
  }
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, rest)
                   : fmt::format("{}:{:02}", minutes, rest);
}

// The first `columns` characters of UTF-8 text, one column each: a line wider than the terminal
// would wrap, and '\r' could not return to its start.
std::string cut_columns(const std::string& text, int64_t columns) {
  int64_t seen = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool starts = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
    if (starts && ++seen > columns) {
      return text.substr(0, at);
    }
  }
  return text;
}

int64_t count_columns(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

std::string bar_text(double fraction, int64_t cells) {
  const auto full = static_cast<size_t>(fraction * static_cast<double>(cells));
  std::string bar(full, '=');
  if (static_cast<int64_t>(full) < cells) {
    bar.push_back('>');
  }
  bar.resize(static_cast<size_t>(cells), ' ');
  return "[" + bar + "]";
}

}  // namespace

ProgressOptions loading_progress() {
  ProgressOptions shown;
  shown.delay = 2;
  shown.transient = true;
  return shown;
}

Progress::Progress(std::string label, int64_t total, ProgressOptions options)
    : label_(std::move(label)),
      total_(total),
      options_(std::move(options)),
      terminal_(options_.terminal.value_or(stderr_is_terminal())),
      to_stderr_(!options_.sink),
      done_(options_.initial) {
  if (!options_.clock) {
    options_.clock = steady_seconds;
  }
  if (!options_.sink) {
    options_.sink = write_to_stderr;
  }
  start_ = options_.clock();
  last_update_ = start_;
  // A terminal gets its first bar immediately; a log waits for the first interval.
  last_draw_ = terminal_ ? -std::numeric_limits<double>::infinity() : start_;
}

Progress::~Progress() {
  const bool on_screen = to_stderr_ ? drawn_ && bar_on_stderr.exchange(false) : drawn_;
  if (finished_ || !on_screen) {
    return;
  }
  try {
    options_.sink(options_.transient ? "\r\x1b[K" : "\n");
  } catch (...) {  // nowhere left to report to
  }
}

void Progress::update(int64_t done, std::string_view note) {
  if (finished_) {
    return;
  }
  const double now = options_.clock();
  const double passed = std::max(now - last_update_, 0.0);
  const double fade = std::exp(-passed / kRateMemory);
  recent_done_ = recent_done_ * fade + static_cast<double>(std::max<int64_t>(done - done_, 0));
  recent_time_ = recent_time_ * fade + passed;
  last_update_ = now;
  done_ = done;
  note_ = note;
  const bool shown = now - start_ >= options_.delay;
  if (shown && now - last_draw_ >= (terminal_ ? kRedrawSeconds : options_.interval)) {
    draw(now, false);
  }
}

void Progress::finish() {
  if (finished_) {
    return;
  }
  const double now = options_.clock();
  if (!options_.transient && now - start_ >= options_.delay) draw(now, true);
  if (options_.transient && drawn_) options_.sink("\r\x1b[K");
  if (options_.transient && drawn_ && to_stderr_) bar_on_stderr = false;
  finished_ = true;
}

double Progress::rate() const { return recent_time_ > 0 ? recent_done_ / recent_time_ : 0; }

void Progress::draw(double now, bool last) {
  last_draw_ = now;
  if (!terminal_) {
    options_.sink(line(now, last) + "\n");
    return;
  }
  const int64_t columns = options_.columns > 0 ? options_.columns : terminal_columns();
  // Leaves the last column free: writing to it makes some terminals wrap.
  const std::string text = cut_columns(line(now, last), columns - 1);
  options_.sink("\r" + text + "\x1b[K" + (last ? "\n" : ""));
  drawn_ = !last;
  if (to_stderr_) {
    bar_on_stderr = drawn_;
  }
}

std::string Progress::line(double now, bool last) const {
  std::string counts = with_commas(done_);
  double fraction = 0;
  if (total_ > 0) {
    fraction = std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
    counts += fmt::format("/{} {:3.0f}%", with_commas(total_), std::floor(fraction * 100));
  }
  std::string rest;
  if (last) {
    // The average over the whole run, for comparison between runs.
    const double elapsed = now - start_;
    const double average =
        elapsed > 0 ? static_cast<double>(done_ - options_.initial) / elapsed : 0;
    rest += fmt::format("  in {}  {}/s", duration_text(elapsed), si_count(average));
  } else if (rate() > 0) {
    rest += fmt::format("  {}/s", si_count(rate()));
    if (total_ > 0) {
      const auto left = static_cast<double>(std::max<int64_t>(total_ - done_, 0));
      rest += fmt::format("  {} left", duration_text(left / rate()));
    }
  }
  if (!note_.empty()) {
    rest += "  " + note_;
  }
  if (!terminal_ || total_ <= 0) {
    return label_ + ": " + counts + rest;
  }
  const int64_t columns = options_.columns > 0 ? options_.columns : terminal_columns();
  const int64_t used = count_columns(label_) + count_columns(counts) + count_columns(rest) + 6;
  const int64_t cells = std::clamp<int64_t>(columns - used, 0, 30);
  constexpr int64_t kSmallestBar = 5;  // smaller bars add nothing to the percentage
  const std::string bar = cells >= kSmallestBar ? " " + bar_text(fraction, cells) : "";
  return label_ + bar + " " + counts + rest;
}

void clear_progress_line() {
  if (bar_on_stderr.exchange(false)) {
    write_to_stderr("\r\x1b[K");
  }
}

}  // namespace rondo
