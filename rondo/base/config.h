// Declarative configuration. A struct lists its fields in one describe() function, which serves
// TOML parsing, defaults, validation, help and dumping:
//
//   struct DepthConfig { std::string scheme = "vanilla"; int64_t levels = 6; };
//   template <class V> void describe(V& v, DepthConfig& c) {
//     v.field("scheme", c.scheme, "how levels share weights", one_of({"vanilla", "ring"}));
//     v.field("levels", c.levels, "number of levels", at_least(1));
//   }
//   struct ModelConfig { int64_t width = 512; DepthConfig depth; };
//   template <class V> void describe(V& v, ModelConfig& c) {
//     v.field("width", c.width, "model width d", between(1, 1 << 20));
//     v.section("depth", c.depth, "weight sharing over depth");
//   }
//
// describe() is found by argument-dependent lookup, so it lives in the struct's namespace. It must
// be a plain list that visits the same keys whatever the values are.
//
// The TOML parser is confined to config_table.cpp because its header is heavy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace rondo {

struct ConfigNode;  // config_node.h: one value and its source location

// Constraint on a field's value, or on each element of a list. Bounds are inclusive.
struct Constraint {
  std::optional<double> low;
  std::optional<double> high;
  std::vector<std::string> choices;  // for text; empty: unconstrained
};
Constraint one_of(std::vector<std::string> choices);
Constraint between(double low, double high);
Constraint at_least(double low);

// A pointer to one field; lists every supported field type.
using FieldRef = std::variant<int64_t*, double*, bool*, std::string*, std::vector<int64_t>*,
                              std::vector<double>*, std::vector<std::vector<int64_t>>*,
                              std::vector<std::string>*>;

// A parsed TOML document, or a section of one, in which every value carries its file and line.
// A value type: copies are independent.
class ConfigTable {
 public:
  ConfigTable();  // empty; for configs made of defaults and set() alone
  ~ConfigTable();
  ConfigTable(const ConfigTable& other);
  ConfigTable(ConfigTable&& other) noexcept;
  ConfigTable& operator=(const ConfigTable& other);
  ConfigTable& operator=(ConfigTable&& other) noexcept;

  // Throws Error{io} if the file cannot be read, Error{bad_input} with file:line:column and the
  // parser's message if it is not TOML, is too long or nests too deep.
  static ConfigTable from_file(const std::string& path);
  static ConfigTable from_string(std::string_view text, const std::string& source_name);

  // Applies "a.b=value", as passed to --set. The value is parsed as TOML; if that fails it is taken
  // as bare text, unless it opens with a quote or bracket and so was meant as TOML. Intermediate
  // tables are created; an existing value, even a table, is replaced. Throws Error{usage} if
  // malformed or if the path crosses something that is not a table. Keys are relative to this
  // table.
  void set(std::string_view assignment);

  // Merges `over` into this table: tables merge key by key, any other value replaces ours. Values
  // keep their source locations. Keys are relative to both tables.
  void merge(const ConfigTable& over);

  // Removes a top-level key of this table, if present.
  void erase(std::string_view key);

  bool has(std::string_view dotted_key) const;
  bool is_table(std::string_view dotted_key) const;

  // The text at `dotted_key`; nullopt if absent. Throws Error{bad_input} on another type.
  std::optional<std::string> get_string(std::string_view dotted_key) const;
  // The same for a number.
  std::optional<double> get_number(std::string_view dotted_key) const;

  // A copy of the table at `dotted_key`, empty if absent. Throws Error{bad_input} if it is not a
  // table. Errors about its keys still give full paths.
  ConfigTable section(std::string_view dotted_key) const;

  // The keys directly inside the table at `dotted_key` ("" for this one), in source order.
  std::vector<std::string> keys(std::string_view dotted_key = {}) const;

  // Throws Error{bad_input} at the first key directly inside `dotted_key` that is not in `allowed`.
  void require_known(std::string_view dotted_key, const std::vector<std::string>& allowed) const;

  // The prefix of errors about `dotted_key`: "lm.toml:12: model.width", "--set model.width", or
  // "lm.toml: model.width" if the key is absent. For callers' own cross-key checks.
  std::string where(std::string_view dotted_key) const;

  // The source of the value at `dotted_key`: "lm.toml:12", "--set", or "" if absent.
  std::string source_of(std::string_view dotted_key) const;

  const std::string& source_name() const { return source_name_; }

 private:
  friend class ConfigReader;
  const ConfigNode* find(std::string_view dotted_key) const;  // "": the root

  std::string source_name_;
  std::string prefix_;  // dotted path of this table in its document; "" for the whole document
  std::unique_ptr<ConfigNode> root_;
};

// The three visitors of describe() share two members, field() and section().

// Base of the visitors: maps the typed `field(key, reference, ...)` to one untyped call.
class ConfigVisitor {
 public:
  virtual ~ConfigVisitor() = default;
  ConfigVisitor(const ConfigVisitor&) = delete;
  ConfigVisitor& operator=(const ConfigVisitor&) = delete;

  template <class T>
  void field(std::string_view key, T& value, std::string_view help,
             const Constraint& constraint = {}) {
    static_assert(std::is_constructible_v<FieldRef, T*>,
                  "a config field is int64_t, double, bool, std::string or a std::vector of them");
    visit(key, FieldRef(&value), help, constraint);
  }
  // Keeps files written before a rename readable: accepts `earlier` for `key`, the field described
  // next.
  virtual void renamed(std::string_view /*earlier*/, std::string_view /*key*/) {}

 protected:
  ConfigVisitor() = default;
  virtual void visit(std::string_view key, FieldRef value, std::string_view help,
                     const Constraint& constraint) = 0;
};

// Overwrites fields with the values in a table and rejects unknown keys.
class ConfigReader : public ConfigVisitor {
 public:
  ConfigReader(const ConfigTable& table, std::string_view prefix,
               const std::vector<std::string>& ignore);
  ~ConfigReader() override;

  template <class S>
  void section(std::string_view key, S& sub, std::string_view /*help*/) {
    enter(key);
    describe(*this, sub);
    leave();
  }
  void renamed(std::string_view earlier, std::string_view key) override;
  void finish() { leave(); }  // checks the outermost table for unknown keys

 private:
  struct Level;
  void visit(std::string_view key, FieldRef value, std::string_view help,
             const Constraint& constraint) override;
  static const ConfigNode* renamed_child(const Level& level, std::string_view key);
  void enter(std::string_view key);
  void leave();

  const ConfigTable& table_;
  const std::vector<std::string>& ignore_;  // dotted, relative to the outermost table
  std::vector<Level> levels_;               // sections being read, outermost first
};

// Writes TOML that round-trips.
class ConfigDumper : public ConfigVisitor {
 public:
  explicit ConfigDumper(std::string_view prefix);
  template <class S>
  void section(std::string_view key, S& sub, std::string_view /*help*/) {
    const size_t outer = enter(key);
    describe(*this, sub);
    current_ = outer;
  }
  std::string text() const;

 private:
  struct Group {
    std::string path;   // dotted section name
    std::string lines;  // its own "key = value" lines
  };
  void visit(std::string_view key, FieldRef value, std::string_view help,
             const Constraint& constraint) override;
  size_t enter(std::string_view key);  // returns the enclosing group

  std::vector<Group> groups_;
  size_t current_ = 0;
};

struct FieldHelp {
  std::string key;           // dotted, from the described struct down
  std::string type;          // "whole number", "list of numbers", ...
  std::string default_text;  // as TOML
  std::string allowed;       // "between 1 and 8", "one of \"a\", \"b\""; "" if unconstrained
  std::string help;
};

class ConfigHelper : public ConfigVisitor {
 public:
  template <class S>
  void section(std::string_view key, S& sub, std::string_view /*help*/) {
    const std::string outer = prefix_;
    prefix_.append(key).append(".");
    describe(*this, sub);
    prefix_ = outer;
  }
  std::vector<FieldHelp> take() { return std::move(fields_); }

 private:
  void visit(std::string_view key, FieldRef value, std::string_view help,
             const Constraint& constraint) override;

  std::string prefix_;
  std::vector<FieldHelp> fields_;
};

// Reads section `prefix` of `table` ("" for all of it) into `config`. Keys that are absent keep the
// value `config` already holds. Throws Error{bad_input}, leaving `config` unchanged, on an unknown
// key anywhere in the section, a wrong type or a violated constraint. `ignore` lists keys of the
// section (dotted if nested) that another struct reads.
template <class C>
void read_config(const ConfigTable& table, std::string_view prefix, C& config,
                 const std::vector<std::string>& ignore = {}) {
  C result = config;
  ConfigReader reader(table, prefix, ignore);
  describe(reader, result);
  reader.finish();
  config = std::move(result);
}

// `config` as TOML, under the header [prefix] if given. read_config() with the same prefix restores
// an equal struct, doubles bit-exactly.
template <class C>
std::string dump_config(const C& config, std::string_view prefix = {}) {
  C copy = config;  // describe() takes a mutable struct
  ConfigDumper dumper(prefix);
  describe(dumper, copy);
  return dumper.text();
}

// One entry per field, in declaration order.
template <class C>
std::vector<FieldHelp> config_help(C defaults) {
  ConfigHelper helper;
  describe(helper, defaults);
  return helper.take();
}

}  // namespace rondo
