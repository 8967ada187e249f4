// Implementation of log.h on spdlog.
#include "rondo/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "rondo/base/progress.h"

namespace rondo {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::shared_ptr<spdlog::logger> make_logger() {
  const char* no_color = std::getenv("NO_COLOR");
  const bool plain = no_color != nullptr && no_color[0] != '\0';
  // "automatic" colors only on capable terminals.
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
      plain ? spdlog::color_mode::never : spdlog::color_mode::automatic);
  auto logger = std::make_shared<spdlog::logger>("rondo", std::move(sink));
  logger->set_pattern("%^%l%$: %v");
  logger->set_level(spdlog::level::info);
  logger->flush_on(spdlog::level::trace);  // stderr may be a file that is being followed
  return logger;
}

// Created on first use and never destroyed, so that static destructors may still log.
spdlog::logger& the_logger() {
  static auto* logger = new std::shared_ptr<spdlog::logger>(make_logger());
  return **logger;
}

}  // namespace

void init_log(int verbosity) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::err, spdlog::level::warn,
                                                   spdlog::level::info, spdlog::level::debug};
  the_logger().set_level(kLevels[std::clamp(verbosity, -2, 1) + 2]);
}

bool log_enabled(LogLevel level) { return the_logger().should_log(spdlog_level(level)); }

void log_message(LogLevel level, std::string_view message) {
  if (!log_enabled(level)) {
    return;
  }
  clear_progress_line();
  the_logger().log(spdlog_level(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace rondo
