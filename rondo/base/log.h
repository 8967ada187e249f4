// Messages for people, on stderr. Data go to stdout and never through here.
//
// Thin on spdlog, whose headers stay in log.cpp. Safe from any thread, and usable before
// init_log() (as if by init_log(0)).
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace rondo {

enum class LogLevel : int { debug, info, warn, error };

// verbosity 0 shows info and above, 1 or more debug too, -1 warnings and errors only, -2 or less
// errors only. Color only if stderr is a terminal and NO_COLOR is unset or empty.
void init_log(int verbosity);

bool log_enabled(LogLevel level);

// One message, no final newline needed. A progress bar on the terminal is cleared out of its way.
void log_message(LogLevel level, std::string_view message);

// Arguments are formatted only if the level is shown.
template <class... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) {
    log_message(level, fmt::format(format, std::forward<Args>(args)...));
  }
}

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::debug, format, std::forward<Args>(args)...);
}

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::info, format, std::forward<Args>(args)...);
}

template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::warn, format, std::forward<Args>(args)...);
}

template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::error, format, std::forward<Args>(args)...);
}

}  // namespace rondo
