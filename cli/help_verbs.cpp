// Command lines of rondo help, completion and man.
#include "cli/help_verbs.h"

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo::cli {
namespace {

// The help of a verb, or of the program if no verb is given.
std::string help_of(CLI::App& app, const std::vector<std::string>& words) {
  CLI::App* place = &app;
  std::string above;
  for (const std::string& word : words) {
    std::vector<std::string> names;
    CLI::App* next = nullptr;
    for (CLI::App* verb : place->get_subcommands([](CLI::App*) { return true; })) {
      names.push_back(verb->get_name());
      if (verb->get_name() == word) next = verb;
    }
    if (next == nullptr) {
      const std::string guess = did_you_mean(word, names);
      throw Error(ExitCode::usage, fmt::format("help: unknown verb '{}'", printable(word)),
                  guess.empty() ? "the verbs are " + join(names, ", ") : guess);
    }
    above += (above.empty() ? "" : " ") + place->get_name();
    place = next;
  }
  if (place != &app) return place->help(above);
  // Without a mode, CLI11 prints the help of the parsed verb instead.
  return app.help("", CLI::AppFormatMode::Normal);
}

}  // namespace

void add_help_verbs(CLI::App& app) {
  auto help = std::make_shared<HelpOptions>();
  add_verb(app, {"help", "show the help of a verb", "rondo help train"}, help)
      ->callback([help, &app] { fmt::print("{}", help_of(app, help->verb)); });
  auto completion = std::make_shared<CompletionOptions>();
  add_verb(app,
           {"completion", "print a shell completion script",
            "rondo completion bash > ~/.local/share/bash-completion/completions/rondo"},
           completion)
      ->callback([completion] { fmt::print("{}", completion_script(completion->shell)); });
  auto man = std::make_shared<ManOptions>();
  add_verb(app, {"man", "write man pages for all verbs", "rondo man man1"}, man)->callback([man] {
    write_man_pages(man->folder);
  });
}

}  // namespace rondo::cli
