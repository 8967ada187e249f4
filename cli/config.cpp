// rondo config: every key of a kind of network and of its training, as the tables in
// docs/configuration.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/config/train_config.h"
#include "rondo/config/zoo.h"

namespace rondo::cli {
namespace {

using Row = std::array<std::string, 5>;

// The kinds of network among the named models, in the zoo's order.
std::vector<std::string> kinds() {
  std::vector<std::string> found;
  for (const ZooEntry& entry : zoo()) {
    const std::string kind = entry.config().kind();
    if (std::find(found.begin(), found.end(), kind) == found.end()) found.push_back(kind);
  }
  return found;
}

// The task of a kind of network.
std::string task_of(const std::string& kind) {
  for (const ZooEntry& entry : zoo()) {
    if (entry.config().kind() == kind) return entry.config().task();
  }
  return {};
}

std::vector<FieldHelp> fields_of(const ConfigOptions& options) {
  return options.section == "model" ? model_config_help(options.kind)
                                    : run_config_help(options.section, task_of(options.kind));
}

std::vector<Row> rows_of(const ConfigOptions& options) {
  std::vector<Row> rows = {{"key", "type", "default", "allowed", "meaning"}};
  for (const FieldHelp& f : fields_of(options)) {
    rows.push_back({"`" + options.section + "." + f.key + "`", f.type, "`" + f.default_text + "`",
                    f.allowed, f.help});
  }
  return rows;
}

// Markdown that is also readable as plain text: all columns but the last are padded.
void print_table(const std::vector<Row>& rows) {
  std::array<size_t, 4> widths = {};
  for (const Row& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line = "|";
    for (size_t i = 0; i < widths.size(); ++i) {
      line += fmt::format(" {:<{}} |", rows[r][i], widths[i]);
    }
    fmt::print("{} {} |\n", line, rows[r].back());
    if (r > 0) continue;
    std::string rule = "|";
    for (const size_t width : widths) rule += std::string(width + 2, '-') + "|";
    fmt::print("{}---|\n", rule);
  }
}

void print_json(const ConfigOptions& options) {
  nlohmann::json out = nlohmann::json::array();
  for (const FieldHelp& f : fields_of(options)) {
    out.push_back({{"key", options.section + "." + f.key},
                   {"type", f.type},
                   {"default", f.default_text},
                   {"allowed", f.allowed},
                   {"meaning", f.help}});
  }
  fmt::print("{}\n", out.dump(2));
}

}  // namespace

void run_config(const ConfigOptions& given) {
  const std::vector<std::string> known = kinds();
  ConfigOptions options = given;
  // A task selects its first kind of network.
  for (const std::string& kind : known) {
    if (task_of(kind) == given.kind) {
      options.kind = kind;
      break;
    }
  }
  if (std::find(known.begin(), known.end(), options.kind) == known.end()) {
    const std::string guess = did_you_mean(options.kind, known);
    throw Error(ExitCode::usage,
                fmt::format("--kind: unknown kind of network '{}'", printable(options.kind)),
                guess.empty() ? "choose one of " + join(known, ", ") : guess);
  }
  const std::vector<std::string> sections = run_config_sections(task_of(options.kind));
  if (std::find(sections.begin(), sections.end(), options.section) == sections.end()) {
    throw Error(ExitCode::usage,
                fmt::format("--section: experiments with a {} have no section '{}'", options.kind,
                            printable(options.section)),
                "choose one of " + join(sections, ", "));
  }
  options.json ? print_json(options) : print_table(rows_of(options));
}

}  // namespace rondo::cli
