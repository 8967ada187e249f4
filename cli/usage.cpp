// Complaints about the command line.
#include "cli/usage.h"

#include <fmt/format.h>

#include <charconv>

#include "rondo/base/memory_limit.h"
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

// Where reading stopped: the innermost verb given, and how it is called ("" for the program
// itself).
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

// A word that has no place there.
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

CLI::Validator whole_number(int64_t low, int64_t high) {
  const auto check = [low, high](std::string& text) -> std::string {
    int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end && value >= low && value <= high) return {};
    return fmt::format("expected a whole number from {} to {}, got '{}'", low, high,
                       printable(text));
  };
  return CLI::Validator(check, "");
}

void add_kernels(CLI::App* verb, std::string& kernels) {
  verb->add_option("--kernels", kernels,
                   "fused: our own; reference: the plain operations they must agree with, slower")
      ->check(CLI::IsMember({"fused", "reference"}))
      ->capture_default_str();
}

void add_computing(CLI::App* verb, ComputeOptions& how) {
  verb->add_option("--threads", how.threads, "CPU threads; 0 = one per core")
      ->check(whole_number(0, kMaxThreads));
  add_kernels(verb, how.kernels);
}

void add_loading(CLI::App* verb, LoadOptions& how) {
  verb->add_flag_callback(
      "--no-verify", [&how] { how.verify = false; },
      "do not compare the checksums of model and state files with their contents");
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const Place place = innermost(app);
  const std::vector<std::string> extras = place.app->remaining();
  if (!extras.empty()) return unexpected(place, extras.front());
  const std::string in = place.name.empty() ? "" : place.name + ": ";
  const std::vector<std::string> verbs = verb_names(*place.app);
  if (!verbs.empty()) {
    return Error(ExitCode::usage, in + "no verb is given", "the verbs are " + join(verbs, ", "));
  }
  return Error(ExitCode::usage, in + error.what(), see_help(place));
}

}  // namespace rondo::cli
