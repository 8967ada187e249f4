// The tree behind ConfigTable: TOML values with their source lines. Internal to the config sources.
// Not toml++'s own nodes, because those lose their location when copied and would pull toml++'s
// header into more than config_table.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/base/config.h"

namespace rondo {

struct ConfigNode {
  enum class Kind { table, array, text, whole, number, boolean, date };

  Kind kind = Kind::table;
  std::string key;   // this node's name in its table; "" for the root and list elements
  int64_t line = 0;  // in the source, from 1; 0 for values from --set
  // The document it comes from; null: that of the enclosing table.
  std::shared_ptr<const std::string> source;
  std::string text;  // of a text; for any value from --set, also the raw input
  int64_t whole = 0;
  double number = 0;
  bool boolean = false;
  std::vector<ConfigNode> children;  // of a table: in source order; of an array: its elements

  ConfigNode* child(std::string_view name);
  const ConfigNode* child(std::string_view name) const;
};

// "a.b" from "a" and "b"; either may be empty.
std::string join_key(std::string_view path, std::string_view key);

// The prefix of an error about `node`, whose path is `dotted`: "lm.toml:12: model.width", or "--set
// model.width" if its line is 0. `table_source` is the document of the enclosing table.
std::string place_of(const ConfigNode& node, const std::string& table_source,
                     std::string_view dotted);

// A node for the "got" of an error: "abc" in quotes, 3.0, [1, 2], a table. Truncated.
std::string show_node(const ConfigNode& node);

// Values as TOML. Text is escaped; a double has a point or an exponent and round-trips exactly.
std::string toml_text(std::string_view value);
std::string toml_number(double value);

// "whole number", "list of numbers", ...
std::string field_type_name(const FieldRef& value);

// "between 1 and 8", "at least 1", "one of \"a\", \"b\"", or "".
std::string constraint_text(const Constraint& constraint);

}  // namespace rondo
