// Reading: from a ConfigTable into described fields, with validation.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "rondo/base/config.h"
#include "rondo/base/config_node.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

using NodeKind = ConfigNode::Kind;

// Converts one node to one field. `dotted` is the path for messages; list elements append "[2]".
class FieldParser {
 public:
  FieldParser(const std::string& source_name, const Constraint& constraint)
      : source_name_(source_name), constraint_(constraint) {}

  void parse(const ConfigNode& node, const std::string& dotted, int64_t& value) const {
    if (node.kind != NodeKind::whole || !in_bounds(static_cast<double>(node.whole))) {
      fail(node, dotted, "a whole number");
    }
    value = node.whole;
  }

  void parse(const ConfigNode& node, const std::string& dotted, double& value) const {
    const bool whole = node.kind == NodeKind::whole;
    const double number = whole ? static_cast<double>(node.whole) : node.number;
    if ((!whole && node.kind != NodeKind::number) || !in_bounds(number)) {
      fail(node, dotted, "a number");
    }
    value = number;
  }

  void parse(const ConfigNode& node, const std::string& dotted, bool& value) const {
    if (node.kind != NodeKind::boolean) {
      fail(node, dotted, "true or false");
    }
    value = node.boolean;
  }

  void parse(const ConfigNode& node, const std::string& dotted, std::string& value) const {
    // From --set, text accepts any scalar: shell users do not type the quotes.
    const bool typed = node.line == 0 && !node.text.empty() && node.kind != NodeKind::table &&
                       node.kind != NodeKind::array;
    if (node.kind != NodeKind::text && !typed) {
      fail(node, dotted, "text");
    }
    const std::vector<std::string>& choices = constraint_.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), node.text) == choices.end()) {
      fail(node, dotted, "text");
    }
    value = node.text;
  }

  template <class T>
  void parse(const ConfigNode& node, const std::string& dotted, std::vector<T>& value) const {
    if (node.kind != NodeKind::array) {
      fail(node, dotted, "a " + field_type_name(FieldRef(&value)));
    }
    std::vector<T> items(node.children.size());
    for (size_t i = 0; i < items.size(); ++i) {
      parse_element(node.children[i], fmt::format("{}[{}]", dotted, i), items, i);
    }
    value = std::move(items);
  }

 private:
  template <class T>
  void parse_element(const ConfigNode& node, const std::string& dotted, std::vector<T>& items,
                     size_t i) const {
    T item{};
    parse(node, dotted, item);
    items[i] = std::move(item);
  }

  // False for NaN unless there are no bounds.
  bool in_bounds(double number) const {
    return (!constraint_.low || number >= *constraint_.low) &&
           (!constraint_.high || number <= *constraint_.high);
  }

  [[noreturn]] void fail(const ConfigNode& node, const std::string& dotted,
                         std::string expected) const {
    const std::string bounds = constraint_text(constraint_);
    if (!constraint_.choices.empty() && expected == "text") {
      expected = bounds;
    } else if (!bounds.empty()) {
      expected += (expected.rfind("a list", 0) == 0 ? ", each " : " ") + bounds;
    }
    std::string message = fmt::format(
        "{}: expected {}, got {}", place_of(node, source_name_, dotted), expected, show_node(node));
    const std::string guess =
        node.kind == NodeKind::text ? did_you_mean(node.text, constraint_.choices) : std::string();
    if (!guess.empty()) {
      message += "; " + guess;
    }
    throw Error(ExitCode::bad_input, std::move(message));
  }

  const std::string& source_name_;
  const Constraint& constraint_;
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// `suggestions` may include keys of subsections ("depth.levels"), for a key placed one table too
// high; `known` are the keys of this table only.
[[noreturn]] void fail_unknown(const std::string& source_name, const ConfigNode& node,
                               const std::string& dotted, const std::vector<std::string>& known,
                               const std::vector<std::string>& suggestions) {
  std::string message =
      fmt::format("{}: unknown key", place_of(node, source_name, printable(dotted)));
  const std::string guess = did_you_mean(node.key, suggestions);
  if (!guess.empty()) {
    message += "; " + guess;
  }
  std::string advice;
  if (!known.empty()) {
    advice = "valid keys here: " + join(known, ", ");
  }
  throw Error(ExitCode::bad_input, std::move(message), std::move(advice));
}

}  // namespace

struct ConfigReader::Level {
  const ConfigNode* node;                      // null: the table is absent, defaults apply
  std::string path;                            // dotted, in the document
  std::string relative;                        // dotted, from the outermost table
  std::string key;                             // last part of path
  std::vector<std::string> known;              // keys described so far
  std::vector<std::string> suggestions;        // those and the keys of subsections
  std::map<std::string, std::string> earlier;  // former names, by key
};

ConfigReader::ConfigReader(const ConfigTable& table, std::string_view prefix,
                           const std::vector<std::string>& ignore)
    : table_(table), ignore_(ignore) {
  const ConfigNode* node = table.find(prefix);
  std::string path = join_key(table.prefix_, prefix);
  if (node != nullptr && node->kind != NodeKind::table) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected a table, got {}", table.where(prefix), show_node(*node)));
  }
  levels_.push_back({node, std::move(path), "", "", {}, {}, {}});
}

ConfigReader::~ConfigReader() = default;

void ConfigReader::visit(std::string_view key, FieldRef value, std::string_view /*help*/,
                         const Constraint& constraint) {
  Level& level = levels_.back();
  RONDO_ASSERT(!contains(level.known, std::string(key)));  // described twice
  level.known.emplace_back(key);
  level.suggestions.emplace_back(key);
  const ConfigNode* node = level.node == nullptr ? nullptr : level.node->child(key);
  if (node == nullptr) node = renamed_child(level, key);
  if (node == nullptr) {
    return;
  }
  const FieldParser parser(table_.source_name_, constraint);
  const std::string dotted = join_key(level.path, key);
  std::visit([&](auto* field) { parser.parse(*node, dotted, *field); }, value);
}

void ConfigReader::renamed(std::string_view earlier, std::string_view key) {
  Level& level = levels_.back();
  level.earlier.emplace(key, earlier);
  const ConfigNode* node = level.node == nullptr ? nullptr : level.node->child(earlier);
  if (node == nullptr || level.node->child(key) == nullptr) return;
  throw Error(
      ExitCode::bad_input,
      fmt::format("{}: given twice, as {} and under its old name {}",
                  place_of(*node, table_.source_name_, join_key(level.path, key)), key, earlier),
      fmt::format("keep {}", key));
}

// The value under the former name of `key`.
const ConfigNode* ConfigReader::renamed_child(const Level& level, std::string_view key) {
  const auto found = level.earlier.find(std::string(key));
  if (level.node == nullptr || found == level.earlier.end()) return nullptr;
  return level.node->child(found->second);
}

void ConfigReader::enter(std::string_view key) {
  Level& outer = levels_.back();
  RONDO_ASSERT(!contains(outer.known, std::string(key)));
  outer.known.emplace_back(key);
  outer.suggestions.emplace_back(key);
  const ConfigNode* node = outer.node == nullptr ? nullptr : outer.node->child(key);
  std::string path = join_key(outer.path, key);
  if (node != nullptr && node->kind != NodeKind::table) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected a table, got {}",
                            place_of(*node, table_.source_name_, path), show_node(*node)));
  }
  std::string relative = join_key(outer.relative, key);
  levels_.push_back({node, std::move(path), std::move(relative), std::string(key), {}, {}, {}});
}

void ConfigReader::leave() {
  const Level level = std::move(levels_.back());
  levels_.pop_back();
  if (level.node != nullptr) {
    std::vector<std::string> known = level.known;
    for (const auto& [key, earlier] : level.earlier) known.push_back(earlier);
    for (const ConfigNode& child : level.node->children) {
      if (!contains(known, child.key) && !contains(ignore_, join_key(level.relative, child.key))) {
        fail_unknown(table_.source_name_, child, join_key(level.path, child.key), level.known,
                     level.suggestions);
      }
    }
  }
  if (!levels_.empty()) {
    for (const std::string& name : level.suggestions) {
      levels_.back().suggestions.push_back(join_key(level.key, name));
    }
  }
}

void ConfigTable::require_known(std::string_view dotted_key,
                                const std::vector<std::string>& allowed) const {
  const ConfigNode* node = find(dotted_key);
  if (node == nullptr || node->kind != NodeKind::table) {
    return;
  }
  const std::string path = join_key(prefix_, dotted_key);
  for (const ConfigNode& child : node->children) {
    if (!contains(allowed, child.key)) {
      fail_unknown(source_name_, child, join_key(path, child.key), allowed, allowed);
    }
  }
}

}  // namespace rondo
