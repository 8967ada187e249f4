// Log messages on stderr. Data goes to stdout and never through here.
//
// A thin wrapper over spdlog, whose headers stay in log.cpp. Thread-safe, and usable before
// init_log() (as if after init_log(0)).
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace rondo {

enum class LogLevel : int { debug, info, warn, error };

// Verbosity 0 shows info and above, 1 or more adds debug, -1 shows only warnings and errors, -2 or
// less only errors. Colored only if stderr is a terminal and NO_COLOR is unset or empty.
void init_log(int verbosity);

bool log_enabled(LogLevel level);

// One message, without a final newline. Clears a progress bar on the terminal first.
void log_message(LogLevel level, std::string_view message);

// Arguments are formatted only if the level is enabled.
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
