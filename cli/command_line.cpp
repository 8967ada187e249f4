// Described options as CLI11 options.
#include "cli/command_line.h"

#include <fmt/format.h>

#include <charconv>

#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/data_paths.h"

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

// Expands "~/x", which the shell does not do in --option=~/x.
CLI::Validator home_expander() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        text = expand_home(text);
        return {};
      },
      "");
}

// Throws Error{io} before any work if the file cannot be written.
CLI::Validator writable_file() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        require_writable(text);
        return {};
      },
      "");
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
    return option->transform(home_expander());
  }
  CLI::Option* operator()(std::string* value) const {
    CLI::Option* option = verb->add_option(names, *value, help);
    if (!spec.allowed.choices.empty()) option->check(CLI::IsMember(spec.allowed.choices));
    if (spec.output) option->check(writable_file());
    if (!spec.text) option->transform(home_expander());
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
    // A default below the allowed range means "not given".
    const bool shown = static_cast<double>(*value) >= spec.allowed.low.value_or(0);
    return shown ? option->capture_default_str() : option;
  }
};

std::vector<DescribedVerb>& verbs_so_far() {
  static std::vector<DescribedVerb> verbs;
  return verbs;
}

// "data check" for the verb `check` of `data`.
std::string whole_name(const CLI::App* verb) {
  const CLI::App* above = verb->get_parent();
  if (above == nullptr) return "";
  const std::string prefix = whole_name(above);
  return prefix.empty() ? verb->get_name() : prefix + " " + verb->get_name();
}

// The default to show; "" for none, including a number that means "not given".
std::string default_of(const OptionSpec& spec, const OptionRef& value) {
  if (spec.required) return "";
  return std::visit(
      [&](auto* one) -> std::string {
        using T = std::remove_pointer_t<decltype(one)>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::vector<std::string>>) {
          return "";
        } else if constexpr (std::is_same_v<T, std::string>) {
          return *one;
        } else {
          const bool shown = static_cast<double>(*one) >= spec.allowed.low.value_or(0);
          return shown ? fmt::format("{}", *one) : "";
        }
      },
      value);
}

void record_option(const CLI::App* verb, const OptionSpec& spec, const OptionRef& value) {
  DescribedOption option;
  option.names = split(spec.names, ',');
  option.help = std::string(spec.help);
  option.default_text = default_of(spec, value);
  option.choices = spec.allowed.choices;
  option.flag = std::holds_alternative<bool*>(value);
  option.list = std::holds_alternative<std::vector<std::string>*>(value);
  option.required = spec.required;
  option.positional = spec.names.front() != '-';
  const std::string name = whole_name(verb);
  for (DescribedVerb& described : verbs_so_far()) {
    if (described.name == name) described.options.push_back(option);
  }
}

}  // namespace

const std::vector<DescribedVerb>& described_verbs() { return verbs_so_far(); }

void CommandLineVisitor::visit(const OptionSpec& spec, OptionRef value) {
  const AddOption add = {verb_, spec, std::string(spec.names), std::string(spec.help)};
  CLI::Option* option = std::visit(add, value);
  if (spec.required) option->required();
  if (spec.hidden) {
    option->group("");
  } else {
    record_option(verb_, spec, value);
  }
}

CLI::App* add_verb(CLI::App& app, const VerbSpec& verb) {
  CLI::App* added = app.add_subcommand(verb.name, verb.summary);
  const std::string above = whole_name(&app);
  for (DescribedVerb& group : verbs_so_far()) group.group = group.group || group.name == above;
  verbs_so_far().push_back({whole_name(added), verb.summary, verb.example, {}, false});
  if (*verb.example != '\0') {
    added->footer(fmt::format("Example: {}\n\n{}", verb.example, app.get_footer()));
  }
  return added;
}

}  // namespace rondo::cli
