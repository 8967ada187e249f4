// The options of a verb, described once. A struct holds the values with their defaults; its
// describe() names every option with its type, help text and allowed values:
//
//   struct GenerateOptions { std::string run; int64_t tokens = 256; bool stream = false; };
//   void describe(OptionVisitor& v, GenerateOptions& o) {
//     v.argument("run", o.run, "a run folder, or a model file");
//     v.option("-n,--tokens", o.tokens, "tokens to generate", between(0, 1 << 20));
//     v.flag("--stream", o.stream, "print each token as it is generated");
//   }
//
// This generates the command line with its checks and help (cli/command_line.h) and the text that
// passes the options to the engine (encode_options, decode_options).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rondo/base/config.h"

namespace rondo::cli {

// A pointer to the value of one option.
using OptionRef =
    std::variant<int64_t*, uint64_t*, double*, bool*, std::string*, std::vector<std::string>*>;

struct OptionSpec {
  std::string_view names;  // "-n,--tokens"; "run" for a positional argument
  std::string_view help;
  Constraint allowed;
  bool required = false;
  bool hidden = false;  // not shown in the help
  char separator = 0;   // for a list: separates several values in one word
  bool given = true;    // for a flag: the value it sets
  bool text = false;    // free text: a leading ~ is not expanded
  bool output = false;  // a file to write: checked before any work

  // The option's name in encoded text: "tokens", "run".
  std::string key() const;
};

class OptionVisitor {
 public:
  virtual ~OptionVisitor() = default;
  OptionVisitor(const OptionVisitor&) = delete;
  OptionVisitor& operator=(const OptionVisitor&) = delete;

  // Positional: one word, or for a list all remaining words.
  template <class T>
  void argument(std::string_view name, T& value, std::string_view help, bool required = true) {
    OptionSpec spec = {name, help, {}};
    spec.required = required;
    visit(spec, &value);
  }
  // A list option may be repeated.
  template <class T>
  void option(std::string_view names, T& value, std::string_view help, Constraint allowed = {}) {
    visit({names, help, std::move(allowed)}, &value);
  }
  void required(std::string_view names, std::string& value, std::string_view help) {
    OptionSpec spec = {names, help, {}};
    spec.required = true;
    visit(spec, &value);
  }
  // A file that the verb writes at the end.
  void output(std::string_view names, std::string& value, std::string_view help,
              bool required = false) {
    OptionSpec spec = {names, help, {}};
    spec.required = required;
    spec.output = true;
    visit(spec, &value);
  }
  void text(std::string_view names, std::string& value, std::string_view help) {
    OptionSpec spec = {names, help, {}};
    spec.text = true;
    visit(spec, &value);
  }
  // A comma-separated list.
  void list(std::string_view names, std::vector<std::string>& values, std::string_view help) {
    OptionSpec spec = {names, help, {}};
    spec.separator = ',';
    visit(spec, &values);
  }
  void flag(std::string_view names, bool& value, std::string_view help, bool given = true) {
    OptionSpec spec = {names, help, {}};
    spec.given = given;
    visit(spec, &value);
  }
  // For internal use.
  void hidden(std::string_view names, std::string& value) {
    OptionSpec spec = {names, "", {}};
    spec.hidden = true;
    visit(spec, &value);
  }

 protected:
  OptionVisitor() = default;
  virtual void visit(const OptionSpec& spec, OptionRef value) = 0;
};

// Writes "key=value" and a zero byte for every option, and for every value of a list. Values may
// hold any other byte: paths need not be UTF-8, which JSON and TOML would require.
class OptionEncoder : public OptionVisitor {
 public:
  std::string take() { return std::move(text_); }

 private:
  void visit(const OptionSpec& spec, OptionRef value) override;
  std::string text_;
};

// Parses such text. Options not named in it keep their values.
class OptionDecoder : public OptionVisitor {
 public:
  explicit OptionDecoder(std::string_view text);
  // Throws Error{failure} if the text names an option that was not described.
  void finish() const;

 private:
  struct Entry {
    std::string key;
    std::string value;
    bool known = false;
  };
  void visit(const OptionSpec& spec, OptionRef value) override;
  std::vector<Entry> entries_;
};

template <class Options>
std::string encode_options(Options options) {
  OptionEncoder encoder;
  describe(encoder, options);
  return encoder.take();
}

// Throws Error{failure} for an unknown option or a value of the wrong type: the text was written by
// another version.
template <class Options>
Options decode_options(std::string_view text) {
  Options options;
  OptionDecoder decoder(text);
  describe(decoder, options);
  decoder.finish();
  return options;
}

}  // namespace rondo::cli
