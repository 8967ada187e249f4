// The command line of a verb, generated from the description of its options (cli/options.h).
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"

namespace rondo::cli {

struct VerbSpec {
  const char* name;
  const char* summary;
  const char* example;  // a command line, shown at the end of its help
};

// Creates CLI11 options that write into the visited values. Their current values are the defaults
// shown in the help.
class CommandLineVisitor : public OptionVisitor {
 public:
  explicit CommandLineVisitor(CLI::App* verb) : verb_(verb) {}

 private:
  void visit(const OptionSpec& spec, OptionRef value) override;
  CLI::App* verb_;
};

// One option, for man pages and completions.
struct DescribedOption {
  std::vector<std::string> names;  // "-n", "--tokens"; "run" for a positional argument
  std::string help;
  std::string default_text;  // "" if there is none worth showing
  std::vector<std::string> choices;
  bool flag = false;
  bool required = false;
  bool positional = false;
  bool list = false;
};

// A verb as described, for man pages and shell completion.
struct DescribedVerb {
  std::string name;  // "data check"
  std::string summary;
  std::string example;
  std::vector<DescribedOption> options;
  bool group = false;  // it has verbs of its own
};
// All verbs, in the order of the program's help; a group comes before its verbs.
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
