// Completion scripts for bash, zsh and fish, generated from the descriptions of the verbs.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command_line.h"
#include "cli/help_verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo::cli {
namespace {

bool is_top(const DescribedVerb& verb) { return verb.name.find(' ') == std::string::npos; }

std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

bool is_below(const DescribedVerb& verb, const DescribedVerb& group) {
  return verb.name.rfind(group.name + " ", 0) == 0;
}

std::vector<std::string> verb_words(const DescribedVerb* group) {
  std::vector<std::string> words;
  for (const DescribedVerb& verb : described_verbs()) {
    const bool listed = group == nullptr ? is_top(verb) : is_below(verb, *group);
    if (listed) words.push_back(last_word(verb.name));
  }
  return words;
}

std::vector<std::string> option_words(const DescribedVerb& verb) {
  std::vector<std::string> words = {"--help"};
  for (const DescribedOption& option : verb.options) {
    if (!option.positional) words.push_back(option.names.back());
  }
  return words;
}

std::vector<std::string> groups() {
  std::vector<std::string> names;
  for (const DescribedVerb& verb : described_verbs()) {
    if (verb.group) names.push_back(verb.name);
  }
  return names;
}

std::string bash_script() {
  std::string text = fmt::format(
      "# bash completion of rondo\n"
      "_rondo() {{\n"
      "  local cur=\"${{COMP_WORDS[COMP_CWORD]}}\" prev=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  local verb=\"${{COMP_WORDS[1]}}\" words=\"\"\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$cur\"))\n"
      "    return\n"
      "  fi\n",
      join(verb_words(nullptr), " "));
  text += fmt::format(
      "  case \"$verb\" in\n    {})\n      if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
      "        case \"$verb\" in\n",
      join(groups(), "|"));
  for (const DescribedVerb& verb : described_verbs()) {
    if (verb.group) {
      text +=
          fmt::format("          {}) words=\"{}\" ;;\n", verb.name, join(verb_words(&verb), " "));
    }
  }
  text +=
      "        esac\n        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n        return\n"
      "      fi\n      verb=\"$verb ${COMP_WORDS[2]}\" ;;\n  esac\n  case \"$verb $prev\" in\n";
  for (const DescribedVerb& verb : described_verbs()) {
    for (const DescribedOption& option : verb.options) {
      if (option.choices.empty() || option.positional) continue;
      text += fmt::format("    \"{} {}\") words=\"{}\" ;;\n", verb.name, option.names.back(),
                          join(option.choices, " "));
    }
  }
  text +=
      "  esac\n  if [ -n \"$words\" ]; then\n    COMPREPLY=($(compgen -W \"$words\" -- "
      "\"$cur\"))\n    return\n  fi\n  case \"$cur\" in -*) ;; *) return ;; esac\n"
      "  case \"$verb\" in\n";
  for (const DescribedVerb& verb : described_verbs()) {
    if (verb.group) continue;
    text += fmt::format("    \"{}\") words=\"{}\" ;;\n", verb.name, join(option_words(verb), " "));
  }
  return text +
         "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
         "complete -o default -F _rondo rondo\n";
}

// An item for zsh's _describe, in single quotes: "name:description".
std::string zsh_item(const std::string& name, const std::string& help) {
  std::string text = name + ":" + help;
  for (size_t at = text.find('\''); at != std::string::npos; at = text.find('\'', at + 4)) {
    text.replace(at, 1, "'\\''");
  }
  return "'" + text + "'";
}

std::string zsh_verbs(const DescribedVerb* group) {
  std::string items;
  for (const DescribedVerb& verb : described_verbs()) {
    const bool listed = group == nullptr ? is_top(verb) : is_below(verb, *group);
    if (listed) items += " " + zsh_item(last_word(verb.name), verb.summary);
  }
  return items;
}

std::string zsh_script() {
  std::string text =
      "#compdef rondo\n"
      "# zsh completion of rondo\n"
      "_rondo() {\n"
      "  local -a items\n"
      "  local verb=$words[2]\n"
      "  if (( CURRENT == 2 )); then\n"
      "    items=(" +
      zsh_verbs(nullptr) + " )\n    _describe verb items\n    return\n  fi\n  case $verb in\n";
  for (const DescribedVerb& verb : described_verbs()) {
    if (!verb.group) continue;
    text += fmt::format(
        "    {})\n      if (( CURRENT == 3 )); then\n        items=({} )\n"
        "        _describe verb items\n        return\n      fi\n      verb=\"$verb $words[3]\" "
        ";;\n",
        verb.name, zsh_verbs(&verb));
  }
  text += "  esac\n  case \"$verb $words[CURRENT-1]\" in\n";
  for (const DescribedVerb& verb : described_verbs()) {
    for (const DescribedOption& option : verb.options) {
      if (option.choices.empty() || option.positional) continue;
      text += fmt::format("    '{} {}') compadd {}; return ;;\n", verb.name, option.names.back(),
                          join(option.choices, " "));
    }
  }
  text +=
      "  esac\n  if [[ $words[CURRENT] != -* ]]; then\n    _files\n    return\n  fi\n"
      "  case $verb in\n";
  for (const DescribedVerb& verb : described_verbs()) {
    if (verb.group) continue;
    std::string items = " " + zsh_item("--help", "show help");
    for (const DescribedOption& option : verb.options) {
      if (!option.positional) items += " " + zsh_item(option.names.back(), option.help);
    }
    text += fmt::format("    '{}') items=({} ) ;;\n", verb.name, items);
  }
  return text + "  esac\n  _describe option items\n}\ncompdef _rondo rondo\n";
}

std::string fish_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + "'";
}

// True once the whole verb is on the command line.
std::string fish_condition(const std::string& verb) {
  std::vector<std::string> parts;
  for (const std::string& word : split(verb, ' ')) {
    parts.push_back("__fish_seen_subcommand_from " + word);
  }
  return join(parts, "; and ");
}

std::string fish_script() {
  std::string text = "# fish completion of rondo\n";
  for (const DescribedVerb& verb : described_verbs()) {
    const size_t space = verb.name.rfind(' ');
    const std::string when = space == std::string::npos
                                 ? "__fish_use_subcommand"
                                 : fish_condition(verb.name.substr(0, space));
    text += fmt::format("complete -c rondo -n {} -a {} -d {}\n", fish_text(when),
                        last_word(verb.name), fish_text(verb.summary));
    for (const DescribedOption& option : verb.options) {
      if (option.positional) continue;
      const bool has_short = option.names.front()[1] != '-';
      text += fmt::format(
          "complete -c rondo -n {}{} -l {}{}{} -d {}\n", fish_text(fish_condition(verb.name)),
          has_short ? " -s " + option.names.front().substr(1) : "", option.names.back().substr(2),
          option.flag ? "" : " -r",
          option.choices.empty() ? "" : " -f -a " + fish_text(join(option.choices, " ")),
          fish_text(option.help));
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  throw Error(ExitCode::usage,
              fmt::format("completion: expected bash, zsh or fish, got '{}'", printable(shell)),
              "for example: rondo completion bash");
}

}  // namespace rondo::cli
