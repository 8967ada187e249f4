// Error messages for an invalid command line.
#include "cli/usage.h"

#include <fmt/format.h>

#include "rondo/base/text.h"

namespace rondo::cli {
namespace {

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string or_else(std::string guess, std::string otherwise) {
  return guess.empty() ? std::move(otherwise) : std::move(guess);
}

// Where parsing stopped: the innermost verb given and its full name ("" for the program itself).
struct Place {
  const CLI::App* app = nullptr;
  std::string name;
};

Place innermost(const CLI::App& app) {
  Place place = {&app, ""};
  while (!place.app->get_subcommands().empty()) {
    place.app = place.app->get_subcommands().front();
    place.name += (place.name.empty() ? "" : " ") + place.app->get_name();
  }
  return place;
}

std::string see_help(const Place& place) {
  return fmt::format("see 'rondo{}{} --help'", place.name.empty() ? "" : " ", place.name);
}

// An unexpected word.
Error unexpected(const Place& place, const std::string& word) {
  const std::string in = place.name.empty() ? "" : place.name + ": ";
  const auto complain = [&](const char* what, std::string advice) {
    return Error(ExitCode::usage, fmt::format("{}{} '{}'", in, what, printable(word)),
                 std::move(advice));
  };
  if (is_option(word)) {
    const std::string bare = word.substr(0, word.find('='));
    return complain("unknown option",
                    or_else(did_you_mean(bare, option_names(*place.app)), see_help(place)));
  }
  const std::vector<std::string> verbs = verb_names(*place.app);
  if (verbs.empty()) return complain("unexpected argument", see_help(place));
  return complain("unknown verb",
                  or_else(did_you_mean(word, verbs), "the verbs are " + join(verbs, ", ")));
}

}  // namespace

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const Place place = innermost(app);
  const std::vector<std::string> extras = place.app->remaining();
  if (!extras.empty()) return unexpected(place, extras.front());
  const std::string in = place.name.empty() ? "" : place.name + ": ";
  const std::vector<std::string> verbs = verb_names(*place.app);
  if (!verbs.empty()) {
    return Error(ExitCode::usage, in + "no verb given", "the verbs are " + join(verbs, ", "));
  }
  return Error(ExitCode::usage, in + error.what(), see_help(place));
}

}  // namespace rondo::cli
