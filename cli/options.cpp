// Options as text, passed from the program to the engine. Compiled into both.
#include "cli/options.h"

#include <fmt/format.h>

#include <charconv>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo::cli {
namespace {

[[noreturn]] void refuse_options(const std::string& what) {
  throw Error(ExitCode::failure, "options passed from the program to its engine: " + what,
              "rondo and librondo_engine.so have different versions: rebuild both");
}

std::string option_text(bool value) { return value ? "true" : "false"; }
const std::string& option_text(const std::string& value) { return value; }
template <class Number>
std::string option_text(Number value) {
  return fmt::format("{}", value);  // for a double, the shortest text that round-trips
}

void read_option(const std::string& key, const std::string& text, std::string& value) {
  (void)key;
  value = text;
}

void read_option(const std::string& key, const std::string& text, bool& value) {
  if (text != "true" && text != "false") {
    refuse_options(fmt::format("{}: expected true or false, got '{}'", key, printable(text)));
  }
  value = text == "true";
}

template <class Number>
void read_option(const std::string& key, const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) {
    refuse_options(fmt::format("{}: expected a number, got '{}'", key, printable(text)));
  }
}

}  // namespace

std::string OptionSpec::key() const {
  const std::string_view last = names.substr(names.rfind(',') + 1);
  return std::string(last.substr(last.find_first_not_of('-')));
}

void OptionEncoder::visit(const OptionSpec& spec, OptionRef value) {
  const auto write = [&](const std::string& text) {
    RONDO_ASSERT(text.find('\0') == std::string::npos);  // program arguments cannot contain one
    text_.append(spec.key()).append("=").append(text).push_back('\0');
  };
  std::visit(
      [&](auto* one) {
        if constexpr (std::is_same_v<decltype(one), std::vector<std::string>*>) {
          for (const std::string& text : *one) write(text);
        } else {
          write(option_text(*one));
        }
      },
      value);
}

OptionDecoder::OptionDecoder(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\0');
    const size_t equals = text.find('=');
    if (end == std::string_view::npos || equals > end) {
      refuse_options(fmt::format("expected 'name=value', got '{}'",
                                 printable(std::string(text.substr(0, end)))));
    }
    entries_.push_back({std::string(text.substr(0, equals)),
                        std::string(text.substr(equals + 1, end - equals - 1))});
    text.remove_prefix(end + 1);
  }
}

void OptionDecoder::visit(const OptionSpec& spec, OptionRef value) {
  const std::string key = spec.key();
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&value)) (*list)->clear();
  for (Entry& entry : entries_) {
    if (entry.key != key) continue;
    entry.known = true;
    std::visit(
        [&](auto* one) {
          if constexpr (std::is_same_v<decltype(one), std::vector<std::string>*>) {
            one->push_back(entry.value);
          } else {
            read_option(key, entry.value, *one);
          }
        },
        value);
  }
}

void OptionDecoder::finish() const {
  for (const Entry& entry : entries_) {
    if (!entry.known) refuse_options(fmt::format("unknown option '{}'", printable(entry.key)));
  }
}

}  // namespace rondo::cli
