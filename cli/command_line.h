// The command line of a verb, from the description of its options (cli/options.h).
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"

namespace rondo::cli {

// How a verb presents itself.
struct VerbSpec {
  const char* name;
  const char* summary;
  const char* example;  // a command line, shown at the end of its help
};

// Makes CLI11 options that write into the visited values. Values that are there already are the
// defaults, which the help shows.
class CommandLineVisitor : public OptionVisitor {
 public:
  explicit CommandLineVisitor(CLI::App* verb) : verb_(verb) {}

 private:
  void visit(const OptionSpec& spec, OptionRef value) override;
  CLI::App* verb_;
};

// What help pages and completions say about one option.
struct DescribedOption {
  std::vector<std::string> names;  // "-n", "--tokens"; of an argument by position "run"
  std::string help;
  std::string default_text;  // "" where there is none worth showing
  std::vector<std::string> choices;
  bool flag = false;
  bool required = false;
  bool positional = false;
  bool list = false;
};

// A verb as it was described: for help in other forms (man pages, completion of shells).
struct DescribedVerb {
  std::string name;  // "data check"
  std::string summary;
  std::string example;
  std::vector<DescribedOption> options;
  bool group = false;  // it has verbs of its own
};
// All of them, in the order of the program's help; a group stands before its verbs.
const std::vector<DescribedVerb>& described_verbs();

// A subcommand without options.
CLI::App* add_verb(CLI::App& app, const VerbSpec& verb);

// A subcommand that fills `options`.
template <class Options>
CLI::App* add_verb(CLI::App& app, const VerbSpec& verb, const std::shared_ptr<Options>& options) {
  CLI::App* added = add_verb(app, verb);
  CommandLineVisitor visitor(added);
  describe(visitor, *options);
  return added;
}

}  // namespace rondo::cli
