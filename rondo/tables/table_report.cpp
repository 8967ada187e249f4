// Table results as text, Markdown and JSON.
#include "rondo/tables/table_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr const char* kNoFigure = "–";

int digits_of(const std::string& metric) {
  if (metric == "bits_per_token" || metric == "bits_per_byte") return 4;
  return 2;
}

std::string number(double value, const std::string& metric) {
  return fmt::format("{:.{}f}", value, digits_of(metric));
}

// Long runs are shown in hours.
bool in_hours(const TableResults& results) {
  constexpr double kManyMinutes = 300;
  return std::any_of(results.cells.begin(), results.cells.end(),
                     [](const CellResult& c) { return c.minutes > kManyMinutes; });
}

std::vector<std::string> header(const TableColumn& column, bool hours) {
  return {"row",
          "parameters",
          "multiply-adds",
          hours ? "hours" : "minutes",
          metric_title(column.metric),
          "paper"};
}

std::vector<std::string> cells_of(const TableResults& results, const TableColumn& column,
                                  const CellResult& cell) {
  const TableRow& row = results.table.row(cell.row);
  const bool all = results.table.parameters != "without embeddings";
  const double parameters = all ? cell.parameters : cell.parameters_without_embeddings;
  const double time = in_hours(results) ? cell.minutes / 60 : cell.minutes;
  std::string score = table_score(cell, column.metric);
  if (cell.diverged > 0) score += fmt::format(" ({} diverged)", cell.diverged);
  if (cell.unfinished > 0) score += fmt::format(" ({} unfinished)", cell.unfinished);
  return {row.label,
          table_count(parameters),
          table_count(cell.multiply_adds),
          cell.seeds.empty() ? kNoFigure : fmt::format("{:.1f}", time),
          score,
          cell.paper.has_value() ? fmt::format("{:g}", *cell.paper) : kNoFigure};
}

using Lines = TableLines;

size_t shown_width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string aligned(const Lines& lines) {
  std::vector<size_t> widths(lines[0].size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], shown_width(line[i]));
  }
  std::string out;
  for (const auto& line : lines) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string fill(widths[i] - shown_width(line[i]), ' ');
      text += i == 0 ? line[i] + fill : "  " + fill + line[i];
    }
    out += text + "\n";
  }
  return out;
}

std::string markdown_table(const Lines& lines) {
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    out += "| " + join(lines[i], " | ") + " |\n";
    if (i > 0) continue;
    out += "|---|";
    for (size_t j = 1; j < lines[i].size(); ++j) out += "---:|";
    out += "\n";
  }
  return out;
}

nlohmann::json finite(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

nlohmann::json cell_json(const CellResult& cell) {
  nlohmann::json seeds = nlohmann::json::array();
  for (const SeedResult& s : cell.seeds) {
    seeds.push_back(
        {{"seed", s.seed}, {"score", s.score}, {"minutes", s.minutes}, {"run", s.folder}});
  }
  nlohmann::json json = {{"row", cell.row},
                         {"column", cell.column},
                         {"seeds", seeds},
                         {"diverged", cell.diverged},
                         {"unfinished", cell.unfinished},
                         {"minutes", cell.minutes},
                         {"parameters", cell.parameters},
                         {"parameters_without_embeddings", cell.parameters_without_embeddings},
                         {"multiply_adds", cell.multiply_adds}};
  if (!cell.seeds.empty()) {
    json["mean"] = cell.score.mean;
    json["low"] = finite(cell.score.low);
    json["high"] = finite(cell.score.high);
  }
  if (cell.paper.has_value()) json["paper"] = *cell.paper;
  return json;
}

nlohmann::json claim_json(const ClaimResult& c) {
  nlohmann::json json = {{"claim", c.claim.name},
                         {"text", c.claim.text},
                         {"column", c.column},
                         {"better", c.claim.better},
                         {"than", c.claim.than},
                         {"margin", c.claim.margin},
                         {"verdict", verdict_name(c.verdict)},
                         {"method", c.method}};
  if (c.verdict != Verdict::missing) {
    json["difference"] = c.difference;
    json["low"] = finite(c.low);
    json["high"] = finite(c.high);
  }
  if (c.p_value.has_value()) json["p_value"] = *c.p_value;
  return json;
}

}  // namespace

TableLines table_lines(const TableResults& results, const TableColumn& column) {
  TableLines lines = {header(column, in_hours(results))};
  for (const CellResult& cell : results.cells) {
    if (cell.column != column.name || !cell.was_run()) continue;
    lines.push_back(cells_of(results, column, cell));
  }
  return lines;
}

std::string rows_not_run(const TableResults& results, const TableColumn& column) {
  std::vector<std::string> labels;
  for (const CellResult& cell : results.cells) {
    if (cell.column != column.name || cell.was_run()) continue;
    labels.push_back(results.table.row(cell.row).label);
  }
  return labels.empty() ? "" : "Not run: " + join(labels, ", ") + ".\n";
}

std::string table_title(const TableResults& results) {
  const PaperTable& t = results.table;
  return fmt::format("{}, {}: {}{}", t.paper, t.place, t.title, results.mini ? " (mini size)" : "");
}

std::string metric_title(const std::string& metric) {
  if (metric == "bleu") return "BLEU ↑";
  if (metric == "accuracy") return "accuracy (%) ↑";
  if (metric == "bits_per_token") return "bits per token ↓";
  if (metric == "bits_per_byte") return "bits per byte ↓";
  return "word perplexity ↓";
}

std::string table_count(double count) {
  if (count <= 0) return kNoFigure;
  if (count >= 1e9) return fmt::format("{:.2f} G", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.2f} M", count / 1e6);
  return fmt::format("{:.0f} k", count / 1e3);
}

std::string table_score(const CellResult& cell, const std::string& metric) {
  if (cell.seeds.empty()) return kNoFigure;
  std::string mean = number(cell.score.mean, metric);
  if (!std::isfinite(cell.score.high)) return mean;
  return fmt::format("{} ± {}", mean, number(cell.score.high - cell.score.mean, metric));
}

std::string claim_evidence(const ClaimResult& c) {
  if (c.verdict == Verdict::missing) return "not run";
  if (c.method == "the other row diverged") return c.method;
  std::string text =
      fmt::format("difference {:+.4g} [{:.4g}, {:.4g}]", c.difference, c.low, c.high);
  if (c.p_value.has_value()) text += fmt::format(", p = {:.2g}", *c.p_value);
  if (c.claim.margin != 0) text += fmt::format(", margin {:g}", c.claim.margin);
  return text + ", " + c.method;
}

std::vector<std::string> table_origins(const TableResults& results) {
  std::vector<std::string> lines;
  if (!results.set.empty()) lines.push_back("Set in every row: " + join(results.set, ", ") + ".");
  for (const std::string& origin : results.origins) lines.push_back("Produced by " + origin + ".");
  return lines;
}

std::string table_text(const TableResults& results) {
  std::string out = table_title(results) + "\n";
  for (const TableColumn& column : results.table.columns) {
    const TableLines lines = table_lines(results, column);
    if (lines.size() == 1) continue;
    out += "\n" + column.label + "\n" + aligned(lines) + rows_not_run(results, column);
  }
  if (!results.claims.empty()) out += "\nClaims\n";
  for (const ClaimResult& c : results.claims) {
    const bool several = results.table.columns.size() > 1;
    out += fmt::format("  {:<9}  {}{}\n             {}\n", verdict_name(c.verdict), c.claim.text,
                       several ? " (" + results.table.column(c.column).label + ")" : "",
                       claim_evidence(c));
  }
  for (const std::string& line : table_origins(results)) out += "\n" + line + "\n";
  return out;
}

std::string table_markdown(const TableResults& results) {
  std::string out = "### " + table_title(results) + "\n";
  for (const TableColumn& column : results.table.columns) {
    const TableLines lines = table_lines(results, column);
    if (lines.size() == 1) continue;
    const std::string not_run = rows_not_run(results, column);
    out += "\n" + column.label + "\n\n" + markdown_table(lines);
    if (!not_run.empty()) out += "\n" + not_run;
  }
  if (!results.claims.empty()) out += "\n| claim | verdict | evidence |\n|---|---|---|\n";
  for (const ClaimResult& c : results.claims) {
    if (c.verdict == Verdict::missing) continue;
    out +=
        fmt::format("| {} | {} | {} |\n", c.claim.text, verdict_name(c.verdict), claim_evidence(c));
  }
  for (const std::string& line : table_origins(results)) out += "\n" + line + "\n";
  return out;
}

std::string table_json(const TableResults& results) {
  nlohmann::json json = {{"table", results.table.name},
                         {"title", results.table.title},
                         {"paper", results.table.paper},
                         {"place", results.table.place},
                         {"mini", results.mini},
                         {"set", results.set},
                         {"made_by", results.origins},
                         {"cells", nlohmann::json::array()},
                         {"claims", nlohmann::json::array()}};
  for (const CellResult& cell : results.cells) json["cells"].push_back(cell_json(cell));
  for (const ClaimResult& claim : results.claims) json["claims"].push_back(claim_json(claim));
  return json.dump(2) + "\n";
}

}  // namespace rondo
