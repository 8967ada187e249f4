// The command line of a verb, from the description of its options (cli/options.h).
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

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
