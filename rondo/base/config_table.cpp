// ConfigTable: TOML to a tree with source locations, --set overrides and lookups. The only file
// that includes toml++.
#include <fmt/core.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "rondo/base/config.h"
#include "rondo/base/config_node.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/limits.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

// Skips the quoted string that starts at text[at], closing quotes included, and counts its lines.
// An unterminated string ends at its line (or the text); the parser reports it.
size_t skip_toml_string(std::string_view text, size_t at, int64_t& line) {
  const char quote = text[at];
  const bool escapes = quote == '"';
  const std::string triple(3, quote);
  const bool multiline = text.substr(at, 3) == triple;
  at += multiline ? 3 : 1;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') {
      if (!multiline) {
        return at;
      }
      ++line;
    }
    if (escapes && c == '\\' && at + 1 < text.size() && text[at + 1] != '\n') {
      at += 2;
    } else if (multiline && text.substr(at, 3) == triple) {
      at += 3;
      // TOML allows up to two more quotes right before the closing three.
      for (int extra = 0; extra < 2 && at < text.size() && text[at] == quote; ++extra) {
        ++at;
      }
      return at;
    } else if (!multiline && c == quote) {
      return at + 1;
    } else {
      ++at;
    }
  }
  return at;
}

struct TomlProblem {
  int64_t line;
  std::string what;  // expected and got
};

// Rejects input that crashes toml++ 3.3. It creates a table per part of a dotted key and destroys
// tables recursively, so a 1 MB file of "a.a.a..." overflows the stack; and non-ASCII letters such
// as e-acute outside quotes trigger undefined behavior in its whitespace tables. (It bounds nested
// brackets itself.)
std::optional<TomlProblem> find_problem(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  int64_t line = 1;
  int dots = 0;
  size_t at = text.substr(0, 3) == kByteOrderMark ? 3 : 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = skip_toml_string(text, at, line);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80) {
      size_t end = at + 1;
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
        ++end;
      }
      return TomlProblem{line, fmt::format("expected only ASCII outside quotes, got '{}'",
                                           printable(text.substr(at, end - at)))};
    }
    if (c == '\n') {
      ++line;
      dots = 0;
    } else if (std::string_view("=,[]{}").find(c) != std::string_view::npos) {
      dots = 0;
    } else if (c == '.' && ++dots >= kMaxConfigDepth) {
      return TomlProblem{line, fmt::format("expected a key of at most {} dotted parts, got more",
                                           kMaxConfigDepth)};
    }
    ++at;
  }
  return std::nullopt;
}

void fill_node(ConfigNode& node, const toml::node& from);

void fill_table(ConfigNode& node, const toml::table& table) {
  struct Item {
    toml::source_position place;
    const toml::key* key;
    const toml::node* value;
  };
  std::vector<Item> items;  // toml++ sorts by name; errors should follow source order
  for (const auto& [key, value] : table) {
    items.push_back({key.source().begin, &key, &value});
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  for (const Item& item : items) {
    ConfigNode& child = node.children.emplace_back();
    child.key = std::string(item.key->str());
    child.line = item.place.line;
    fill_node(child, *item.value);
  }
}

// Copies the kind and value of `from`; children get their own lines. Recursion is bounded by
// find_problem() and toml++'s limit on nested brackets.
void fill_node(ConfigNode& node, const toml::node& from) {
  using Kind = ConfigNode::Kind;
  if (const toml::table* table = from.as_table()) {
    node.kind = Kind::table;
    fill_table(node, *table);
  } else if (const toml::array* array = from.as_array()) {
    node.kind = Kind::array;
    for (const toml::node& element : *array) {
      ConfigNode& child = node.children.emplace_back();
      child.line = element.source().begin.line;
      fill_node(child, element);
    }
  } else if (const auto* text = from.as_string()) {
    node.kind = Kind::text;
    node.text = text->get();
  } else if (const auto* whole = from.as_integer()) {
    node.kind = Kind::whole;
    node.whole = whole->get();
  } else if (const auto* number = from.as_floating_point()) {
    node.kind = Kind::number;
    node.number = number->get();
  } else if (const auto* boolean = from.as_boolean()) {
    node.kind = Kind::boolean;
    node.boolean = boolean->get();
  } else {
    node.kind = Kind::date;  // TOML dates and times, which no field accepts
  }
}

// Marks a tree as coming from --set.
void forget_lines(ConfigNode& node) {
  node.line = 0;
  for (ConfigNode& child : node.children) {
    forget_lines(child);
  }
}

std::string_view trim_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

[[noreturn]] void fail_set(std::string_view assignment, const std::string& why) {
  throw Error(ExitCode::usage, fmt::format("--set {}: {}", printable(assignment), why),
              "write it as --set section.key=value, for example --set model.width=256");
}

std::vector<std::string> split_set_key(std::string_view assignment, std::string_view key) {
  std::vector<std::string> parts = split(key, '.');
  for (const std::string& part : parts) {
    const bool bare = std::all_of(part.begin(), part.end(), [](unsigned char c) {
      return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
             c == '_' || c == '-';
    });
    if (part.empty() || !bare) {
      fail_set(assignment, fmt::format("expected a dotted key of letters, digits, '_' and '-', "
                                       "got '{}'",
                                       printable(key)));
    }
  }
  if (parts.size() > static_cast<size_t>(kMaxConfigDepth)) {
    fail_set(assignment, fmt::format("expected a key of at most {} dotted parts, got {}",
                                     kMaxConfigDepth, parts.size()));
  }
  return parts;
}

// `value` parsed as TOML, or the error message.
std::variant<ConfigNode, std::string> parse_toml_value(std::string_view value) {
  if (std::optional<TomlProblem> problem = find_problem(value)) {
    return std::move(problem->what);
  }
  try {
    const toml::table table = toml::parse("v = " + std::string(value));
    if (table.size() != 1) {
      return "expected one value, got several lines";
    }
    ConfigNode node;
    fill_node(node, *table.get("v"));
    return node;
  } catch (const toml::parse_error& error) {
    return std::string(error.description());
  }
}

ConfigNode parse_set_value(std::string_view assignment, std::string_view value) {
  if (!valid_utf8(value)) {
    fail_set(assignment, "expected UTF-8, got other bytes");
  }
  std::variant<ConfigNode, std::string> parsed = parse_toml_value(value);
  ConfigNode node;
  if (ConfigNode* toml_node = std::get_if<ConfigNode>(&parsed)) {
    node = std::move(*toml_node);
    if (node.kind != ConfigNode::Kind::text) {
      node.text = std::string(value);  // a text field takes 42 verbatim
    }
  } else if (!value.empty() && std::string_view("\"'[{").find(value[0]) != std::string_view::npos) {
    fail_set(assignment, fmt::format("the value is not TOML: {}",
                                     printable(std::get<std::string>(parsed), 400)));
  } else {
    node.kind = ConfigNode::Kind::text;
    node.text = std::string(value);
  }
  forget_lines(node);
  return node;
}

}  // namespace

ConfigTable::ConfigTable() : root_(std::make_unique<ConfigNode>()) {}
ConfigTable::~ConfigTable() = default;
ConfigTable::ConfigTable(ConfigTable&& other) noexcept = default;
ConfigTable& ConfigTable::operator=(ConfigTable&& other) noexcept = default;
ConfigTable::ConfigTable(const ConfigTable& other)
    : source_name_(other.source_name_),
      prefix_(other.prefix_),
      root_(std::make_unique<ConfigNode>(*other.root_)) {}
ConfigTable& ConfigTable::operator=(const ConfigTable& other) { return *this = ConfigTable(other); }

ConfigTable ConfigTable::from_file(const std::string& path) {
  return from_string(read_text_file(path, kMaxConfigBytes), path);
}

ConfigTable ConfigTable::from_string(std::string_view text, const std::string& source_name) {
  if (text.size() > static_cast<size_t>(kMaxConfigBytes)) {
    throw Error(ExitCode::bad_input, fmt::format("{}: expected at most {} bytes, got {}",
                                                 source_name, kMaxConfigBytes, text.size()));
  }
  if (const std::optional<TomlProblem> problem = find_problem(text)) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}:{}: {}", source_name, problem->line, problem->what));
  }
  ConfigTable result;
  result.source_name_ = source_name;
  try {
    fill_node(*result.root_, toml::parse(text, source_name));
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw Error(ExitCode::bad_input, fmt::format("{}:{}:{}: {}", source_name, at.line, at.column,
                                                 printable(error.description(), 400)));
  }
  return result;
}

void ConfigTable::set(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    fail_set(assignment, "expected key=value, got no '='");
  }
  const std::vector<std::string> parts =
      split_set_key(assignment, trim_blanks(assignment.substr(0, equals)));
  ConfigNode value = parse_set_value(assignment, trim_blanks(assignment.substr(equals + 1)));
  ConfigNode* node = root_.get();
  std::string path = prefix_;
  for (const std::string& part : parts) {
    if (node->kind != ConfigNode::Kind::table) {
      fail_set(assignment,
               fmt::format("expected {} to be a table, got {}", path, show_node(*node)));
    }
    path = join_key(path, part);
    ConfigNode* next = node->child(part);
    if (next == nullptr) {
      next = &node->children.emplace_back();
      next->key = part;
    }
    node = next;
  }
  value.key = parts.back();
  *node = std::move(value);
}

const ConfigNode* ConfigTable::find(std::string_view dotted_key) const {
  const ConfigNode* node = root_.get();
  if (dotted_key.empty()) {
    return node;
  }
  for (const std::string& part : split(dotted_key, '.')) {
    node = node->kind == ConfigNode::Kind::table ? node->child(part) : nullptr;
    if (node == nullptr) {
      return nullptr;
    }
  }
  return node;
}

bool ConfigTable::has(std::string_view dotted_key) const { return find(dotted_key) != nullptr; }

bool ConfigTable::is_table(std::string_view dotted_key) const {
  const ConfigNode* node = find(dotted_key);
  return node != nullptr && node->kind == ConfigNode::Kind::table;
}

std::optional<std::string> ConfigTable::get_string(std::string_view dotted_key) const {
  const ConfigNode* node = find(dotted_key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (node->kind != ConfigNode::Kind::text) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected text, got {}", where(dotted_key), show_node(*node)));
  }
  return node->text;
}

ConfigTable ConfigTable::section(std::string_view dotted_key) const {
  ConfigTable result;
  result.source_name_ = source_name_;
  result.prefix_ = join_key(prefix_, dotted_key);
  if (const ConfigNode* node = find(dotted_key)) {
    if (node->kind != ConfigNode::Kind::table) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: expected a table, got {}", where(dotted_key), show_node(*node)));
    }
    *result.root_ = *node;
  }
  return result;
}

std::vector<std::string> ConfigTable::keys(std::string_view dotted_key) const {
  std::vector<std::string> names;
  const ConfigNode* node = find(dotted_key);
  if (node != nullptr && node->kind == ConfigNode::Kind::table) {
    for (const ConfigNode& child : node->children) {
      names.push_back(child.key);
    }
  }
  return names;
}

std::string ConfigTable::where(std::string_view dotted_key) const {
  const std::string full = join_key(prefix_, dotted_key);
  const ConfigNode* node = find(dotted_key);
  if (node == nullptr || dotted_key.empty()) {
    return source_name_.empty() ? full : fmt::format("{}: {}", source_name_, full);
  }
  return place_of(*node, source_name_, full);
}

}  // namespace rondo
