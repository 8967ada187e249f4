// rondo config: every key of a kind of network, as the table that docs/configuration.md shows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/model/zoo.h"

namespace rondo::cli {
namespace {

using Row = std::array<std::string, 5>;

// The kinds of network that named models are of, in the zoo's order.
std::vector<std::string> kinds() {
  std::vector<std::string> found;
  for (const ZooEntry& entry : zoo()) {
    const std::string kind = entry.config().kind();
    if (std::find(found.begin(), found.end(), kind) == found.end()) found.push_back(kind);
  }
  return found;
}

std::vector<Row> rows_of(const std::string& kind) {
  std::vector<Row> rows = {{"key", "type", "default", "allowed", "meaning"}};
  for (const FieldHelp& f : model_config_help(kind)) {
    rows.push_back(
        {"`model." + f.key + "`", f.type, "`" + f.default_text + "`", f.allowed, f.help});
  }
  return rows;
}

// Markdown that also reads well as it is: all columns but the last are padded.
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

void print_json(const std::string& kind) {
  nlohmann::json out = nlohmann::json::array();
  for (const FieldHelp& f : model_config_help(kind)) {
    out.push_back({{"key", "model." + f.key},
                   {"type", f.type},
                   {"default", f.default_text},
                   {"allowed", f.allowed},
                   {"meaning", f.help}});
  }
  fmt::print("{}\n", out.dump(2));
}

}  // namespace

void run_config(const ConfigOptions& options) {
  const std::vector<std::string> known = kinds();
  if (std::find(known.begin(), known.end(), options.kind) == known.end()) {
    const std::string guess = did_you_mean(options.kind, known);
    throw Error(ExitCode::usage,
                fmt::format("--kind: unknown kind of network '{}'", printable(options.kind)),
                guess.empty() ? "choose one of " + join(known, ", ") : guess);
  }
  options.json ? print_json(options.kind) : print_table(rows_of(options.kind));
}

}  // namespace rondo::cli
