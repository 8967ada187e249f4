// The tree behind ConfigTable: TOML values that remember the line they were written on. Internal
// to the config sources. It is our own because toml++'s nodes forget their place when copied, and
// because this way only config_table.cpp pays for toml++'s header.
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
  int64_t line = 0;  // in the source, from 1; 0 for what --set gave
  // The document it was written in; null: that of the table it is in.
  std::shared_ptr<const std::string> source;
  std::string text;  // of a text; for any value from --set, also what the user typed
  int64_t whole = 0;
  double number = 0;
  bool boolean = false;
  std::vector<ConfigNode> children;  // of a table: its keys as written; of an array: its elements

  ConfigNode* child(std::string_view name);
  const ConfigNode* child(std::string_view name) const;
};

// "a.b" from "a" and "b"; either may be empty.
std::string join_key(std::string_view path, std::string_view key);

// How an error about `node`, called `dotted`, begins: "lm.toml:12: model.width", or "--set
// model.width" for a line of 0. `table_source` is the document of the table it is in.
std::string place_of(const ConfigNode& node, const std::string& table_source,
                     std::string_view dotted);

// A node as an error's "got": "abc" in quotes, 3.0, [1, 2], a table. Shortened.
std::string show_node(const ConfigNode& node);

// Values as TOML. Text is escaped; a double gets a point or an exponent and reads back exactly.
std::string toml_text(std::string_view value);
std::string toml_number(double value);

// "whole number", "list of numbers", ...
std::string field_type_name(const FieldRef& value);

// "between 1 and 8", "at least 1", "one of \"a\", \"b\"", or "".
std::string constraint_text(const Constraint& constraint);

}  // namespace rondo
