// Man pages, generated from the descriptions of the verbs.
#include <fmt/format.h>

#include <filesystem>

#include "cli/command_line.h"
#include "cli/help_verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/base/version.h"

namespace rondo::cli {
namespace {

// Escapes text for roff: no line begins with a dot or quote, hyphens can be copied and pasted, and
// non-ASCII characters are written by code point, whatever encoding the reader's roff expects.
std::string roff(const std::string& text) {
  std::string out;
  uint32_t code = 0;
  int missing = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0xC0) {
      missing = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
      code = byte & (0x3FU >> static_cast<unsigned>(missing));
      continue;
    }
    if (byte >= 0x80) {
      code = (code << 6U) | (byte & 0x3FU);
      if (--missing == 0) out += fmt::format("\\[u{:04X}]", code);
      continue;
    }
    const bool line_begins = out.empty() || out.back() == '\n';
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string page_name(const std::string& verb) {
  std::string name = "rondo-" + verb;
  for (char& c : name) c = c == ' ' ? '-' : c;
  return name;
}

std::string header(const std::string& page, const std::string& summary) {
  return fmt::format(".TH {} 1 \"\" \"rondo {}\" \"User commands\"\n.SH NAME\n{} \\- {}\n",
                     roff(upper(page)), kVersion, roff(page), roff(summary));
}

std::string exit_codes() {
  return ".SH EXIT STATUS\n"
         "0 ok, 1 failure, 2 usage, 3 bad model, data or configuration, 4 input/output, 5 "
         "diverged, 6 already running, 7 lost another process of the group; 130 (Ctrl\\-C), 143 "
         "(kill) and 129 (hang\\-up) when training was stopped and saved a checkpoint.\n";
}

std::string synopsis(const DescribedVerb& verb) {
  std::string text = fmt::format(".SH SYNOPSIS\n.B rondo {}\n", roff(verb.name));
  if (verb.group) return text + ".I verb\n[options]\n";
  for (const DescribedOption& option : verb.options) {
    if (!option.positional) continue;
    const std::string name = roff(option.names.front()) + (option.list ? " ..." : "");
    text += option.required ? fmt::format(".I {}\n", name) : fmt::format(".RI [ {} ]\n", name);
  }
  return text + "[options]\n";
}

std::string option_entry(const DescribedOption& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  }
  if (!option.flag && !option.positional) {
    names += option.choices.empty() ? " \\fIvalue\\fR" : " " + roff(join(option.choices, "|"));
  }
  std::string text = fmt::format(".TP\n{}\n{}", names, roff(option.help));
  if (!option.default_text.empty() && !option.positional) {
    text += fmt::format(" (default: {})", roff(option.default_text));
  }
  if (option.required && !option.positional) text += " (required)";
  return text + "\n";
}

std::string verb_page(const DescribedVerb& verb) {
  std::string text = header(page_name(verb.name), verb.summary) + synopsis(verb);
  std::string arguments;
  std::string options;
  for (const DescribedOption& option : verb.options) {
    (option.positional ? arguments : options) += option_entry(option);
  }
  if (!arguments.empty()) text += ".SH ARGUMENTS\n" + arguments;
  if (!options.empty()) text += ".SH OPTIONS\n" + options;
  if (verb.group) {
    text += ".SH VERBS\n";
    for (const DescribedVerb& other : described_verbs()) {
      if (other.name.rfind(verb.name + " ", 0) != 0) continue;
      text += fmt::format(".TP\n\\fBrondo {}\\fR\n{}\n", roff(other.name), roff(other.summary));
    }
  }
  if (!verb.example.empty()) {
    text += fmt::format(".SH EXAMPLE\n.nf\n{}\n.fi\n", roff(verb.example));
  }
  return text + exit_codes() + ".SH SEE ALSO\n.BR rondo (1)\n";
}

std::string main_page() {
  std::string text = header("rondo", "transformers that reuse their weights, over depth and time");
  text +=
      ".SH SYNOPSIS\n.B rondo\n.I verb\n[arguments] [options]\n.SH DESCRIPTION\n"
      "Trains, evaluates and runs transformers that reuse their weights. "
      "Every verb has its own page, for example \\fBman rondo\\-train\\fR.\n.SH VERBS\n";
  for (const DescribedVerb& verb : described_verbs()) {
    if (verb.group) continue;
    text += fmt::format(".TP\n\\fBrondo {}\\fR\n{}\n", roff(verb.name), roff(verb.summary));
  }
  return text + exit_codes() +
         ".SH FILES\n.TP\n\\fIruns/NAME\\fR\nrun folders: configuration, metrics, checkpoints, "
         "best model\n.TP\n\\fI~/.cache/rondo\\fR\ntokenized text\n";
}

}  // namespace

void write_man_pages(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(ExitCode::io,
                fmt::format("{}: cannot create the folder: {}", folder, error.message()));
  }
  write_file(folder + "/rondo.1", main_page());
  for (const DescribedVerb& verb : described_verbs()) {
    write_file(fmt::format("{}/{}.1", folder, page_name(verb.name)), verb_page(verb));
  }
}

}  // namespace rondo::cli
