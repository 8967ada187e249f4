// Described options as CLI11 has them.
#include "cli/command_line.h"

#include <fmt/format.h>

#include <charconv>

#include "rondo/base/text.h"

namespace rondo::cli {
namespace {

// Accepts whole numbers within the bounds.
CLI::Validator whole_number(const Constraint& allowed) {
  const int64_t low = static_cast<int64_t>(allowed.low.value_or(0));
  const int64_t high = allowed.high ? static_cast<int64_t>(*allowed.high) : INT64_MAX;
  const auto check = [low, high](std::string& text) -> std::string {
    int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end && value >= low && value <= high) return {};
    return fmt::format("expected a whole number from {} to {}, got '{}'", low, high,
                       printable(text));
  };
  return CLI::Validator(check, "");
}

// Registers one option by the type of its value.
struct AddOption {
  CLI::App* verb;
  const OptionSpec& spec;
  std::string names;
  std::string help;

  CLI::Option* operator()(bool* value) const {
    if (spec.given) return verb->add_flag(names, *value, help);
    return verb->add_flag_callback(
        names, [value] { *value = false; }, help);
  }
  CLI::Option* operator()(std::vector<std::string>* value) const {
    CLI::Option* option = verb->add_option(names, *value, help);
    if (names.front() == '-') option->take_all()->expected(1);
    if (spec.separator != 0) option->delimiter(spec.separator);
    return option;
  }
  CLI::Option* operator()(std::string* value) const {
    CLI::Option* option = verb->add_option(names, *value, help);
    if (!spec.allowed.choices.empty()) option->check(CLI::IsMember(spec.allowed.choices));
    return spec.required ? option : option->capture_default_str();
  }
  CLI::Option* operator()(double* value) const {
    CLI::Option* option = verb->add_option(names, *value, help);
    if (spec.allowed.low) option->check(CLI::Range(*spec.allowed.low, *spec.allowed.high));
    return option->capture_default_str();
  }
  template <class Whole>
  CLI::Option* operator()(Whole* value) const {
    CLI::Option* option = verb->add_option(names, *value, help);
    if (spec.allowed.low) option->check(whole_number(spec.allowed));
    // One below what may be given stands for "not given".
    const bool shown = static_cast<double>(*value) >= spec.allowed.low.value_or(0);
    return shown ? option->capture_default_str() : option;
  }
};

}  // namespace

void CommandLineVisitor::visit(const OptionSpec& spec, OptionRef value) {
  const AddOption add = {verb_, spec, std::string(spec.names), std::string(spec.help)};
  CLI::Option* option = std::visit(add, value);
  if (spec.required) option->required();
  if (spec.hidden) option->group("");
}

CLI::App* add_verb(CLI::App& app, const VerbSpec& verb) {
  CLI::App* added = app.add_subcommand(verb.name, verb.summary);
  if (*verb.example != '\0') {
    added->footer(fmt::format("Example: {}\n\n{}", verb.example, app.get_footer()));
  }
  return added;
}

}  // namespace rondo::cli
