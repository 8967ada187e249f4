// Writing: fields as TOML and as help, and the wording shared by all config sources.
#include <fmt/core.h>

#include <cmath>

#include "rondo/base/config.h"
#include "rondo/base/config_node.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr int64_t kShownBytes = 60;  // of an invalid value in a message

std::string toml_value(int64_t value) { return std::to_string(value); }
std::string toml_value(double value) { return toml_number(value); }
std::string toml_value(bool value) { return value ? "true" : "false"; }
std::string toml_value(const std::string& value) { return toml_text(value); }

template <class T>
std::string toml_value(const std::vector<T>& values) {
  std::vector<std::string> items;
  for (const T& value : values) {
    items.push_back(toml_value(value));
  }
  return "[" + join(items, ", ") + "]";
}

std::string toml_field(const FieldRef& value) {
  return std::visit([](const auto* field) { return toml_value(*field); }, value);
}

// A bound in its shortest form: 1048576, 0.5, 1e-05.
std::string bound_text(double bound) { return fmt::format("{}", bound); }

struct TypeName {
  std::string operator()(const int64_t*) const { return "whole number"; }
  std::string operator()(const double*) const { return "number"; }
  std::string operator()(const bool*) const { return "true or false"; }
  std::string operator()(const std::string*) const { return "text"; }
  std::string operator()(const std::vector<int64_t>*) const { return "list of whole numbers"; }
  std::string operator()(const std::vector<double>*) const { return "list of numbers"; }
  std::string operator()(const std::vector<std::vector<int64_t>>*) const {
    return "list of lists of whole numbers";
  }
  std::string operator()(const std::vector<std::string>*) const { return "list of texts"; }
};

}  // namespace

Constraint one_of(std::vector<std::string> choices) {
  Constraint constraint;
  constraint.choices = std::move(choices);
  return constraint;
}

Constraint between(double low, double high) {
  Constraint constraint;
  constraint.low = low;
  constraint.high = high;
  return constraint;
}

Constraint at_least(double low) {
  Constraint constraint;
  constraint.low = low;
  return constraint;
}

const ConfigNode* ConfigNode::child(std::string_view name) const {
  for (const ConfigNode& node : children) {
    if (node.key == name) {
      return &node;
    }
  }
  return nullptr;
}

ConfigNode* ConfigNode::child(std::string_view name) {
  return const_cast<ConfigNode*>(static_cast<const ConfigNode*>(this)->child(name));
}

std::string join_key(std::string_view path, std::string_view key) {
  std::string joined(path);
  if (!path.empty() && !key.empty()) {
    joined.push_back('.');
  }
  return joined.append(key);
}

std::string place_of(const ConfigNode& node, const std::string& table_source,
                     std::string_view dotted) {
  const std::string& source = node.source != nullptr ? *node.source : table_source;
  return node.line == 0 ? fmt::format("--set {}", dotted)
                        : fmt::format("{}:{}: {}", source, node.line, dotted);
}

std::string show_node(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::table:
      return "a table";
    case ConfigNode::Kind::array: {
      std::string shown;
      for (const ConfigNode& element : node.children) {
        shown += (shown.empty() ? "" : ", ") + show_node(element);
        if (shown.size() > static_cast<size_t>(kShownBytes)) {
          break;  // printable() marks the truncation
        }
      }
      return "[" + printable(shown, kShownBytes) + "]";
    }
    case ConfigNode::Kind::text:
      return "\"" + printable(node.text, kShownBytes) + "\"";
    case ConfigNode::Kind::whole:
      return toml_value(node.whole);
    case ConfigNode::Kind::number:
      return toml_value(node.number);
    case ConfigNode::Kind::boolean:
      return toml_value(node.boolean);
    case ConfigNode::Kind::date:
      return "a date or time";
  }
  return {};
}

std::string toml_text(std::string_view value) {
  std::string quoted = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted.push_back('\\');
      quoted.push_back(c);
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += fmt::format("\\u{:04X}", byte);
    } else {
      quoted.push_back(c);
    }
  }
  return quoted + "\"";
}

std::string toml_number(double value) {
  std::string text = fmt::format("{}", value);  // the shortest that round-trips
  // "1" would parse as a whole number; "inf" and "nan" are valid TOML.
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

std::string field_type_name(const FieldRef& value) { return std::visit(TypeName(), value); }

std::string constraint_text(const Constraint& constraint) {
  if (!constraint.choices.empty()) {
    std::vector<std::string> quoted;
    for (const std::string& choice : constraint.choices) {
      quoted.push_back("\"" + choice + "\"");
    }
    return "one of " + join(quoted, ", ");
  }
  if (constraint.low && constraint.high) {
    return fmt::format("between {} and {}", bound_text(*constraint.low),
                       bound_text(*constraint.high));
  }
  if (constraint.low) {
    return "at least " + bound_text(*constraint.low);
  }
  return constraint.high ? "at most " + bound_text(*constraint.high) : std::string();
}

ConfigDumper::ConfigDumper(std::string_view prefix) {
  groups_.push_back({std::string(prefix), ""});
}

void ConfigDumper::visit(std::string_view key, FieldRef value, std::string_view /*help*/,
                         const Constraint& /*constraint*/) {
  groups_[current_].lines.append(key).append(" = ").append(toml_field(value)).append("\n");
}

size_t ConfigDumper::enter(std::string_view key) {
  groups_.push_back({join_key(groups_[current_].path, key), ""});
  return std::exchange(current_, groups_.size() - 1);
}

std::string ConfigDumper::text() const {
  std::string text;
  for (const Group& group : groups_) {
    if (group.lines.empty()) {
      continue;  // only subsections; their headers create it
    }
    if (!text.empty()) {
      text.push_back('\n');
    }
    if (!group.path.empty()) {
      text.append("[").append(group.path).append("]\n");
    }
    text.append(group.lines);
  }
  return text;
}

void ConfigHelper::visit(std::string_view key, FieldRef value, std::string_view help,
                         const Constraint& constraint) {
  fields_.push_back({prefix_ + std::string(key), field_type_name(value), toml_field(value),
                     constraint_text(constraint), std::string(help)});
}

}  // namespace rondo
