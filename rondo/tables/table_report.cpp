// Table results as text and JSON.
#include "rondo/tables/table_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "rondo/base/text.h"
#include "rondo/report/run_curves.h"

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

size_t shown_width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string aligned(const TableLines& lines) {
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

nlohmann::json origin_json(const TableOrigin& origin) {
  return {{"runs", origin.runs.size()}, {"hours", origin.hours}, {"commits", origin.commits},
          {"cpus", origin.cpus},        {"data", origin.data},   {"threads", origin.threads}};
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

std::string claim_text(const TableResults& results, const ClaimResult& c) {
  if (results.table.columns.size() == 1) return c.claim.text;
  return fmt::format("{} ({})", c.claim.text, results.table.column(c.column).label);
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

std::string logged_metric(const std::string& metric) {
  if (metric == "bits_per_token" || metric == "word_perplexity") return "valid_bits_per_token";
  if (metric == "bits_per_byte") return "valid_bits_per_byte";
  return metric == "accuracy" ? "valid_accuracy" : "valid_loss";
}

std::string table_trend(const TableResults& results, const TableColumn& column) {
  constexpr double kLate = 0.75;  // of the steps
  const std::string key = logged_metric(column.metric);
  std::set<double> lasts;
  std::set<double> since;
  std::vector<double> changes;  // by row, averaged over seeds
  for (const CellResult& cell : results.cells) {
    if (cell.column != column.name || cell.seeds.empty()) continue;
    double sum = 0;
    for (const SeedResult& seed : cell.seeds) {
      const Curve curve = read_curve(seed.folder, key);
      if (curve.empty()) return "";
      const auto last = std::prev(curve.end());
      auto late = curve.upper_bound(kLate * last->first);
      if (late == curve.begin()) return "";
      --late;
      sum += last->second - late->second;
      lasts.insert(last->first);
      since.insert(late->first);
    }
    changes.push_back(sum / static_cast<double>(cell.seeds.size()));
  }
  if (changes.empty() || lasts.size() > 1 || since.size() > 1) return "";
  const auto [low, high] = std::minmax_element(changes.begin(), changes.end());
  return fmt::format(
      "From step {} to the last, {}, {} changed by {:+.4f} to {:+.4f} (means of rows).\n",
      *since.begin(), *lasts.begin(), key, *low, *high);
}

std::vector<std::string> table_origins(const TableResults& results) {
  std::vector<std::string> lines;
  if (!results.set.empty()) lines.push_back("Set in every row: " + join(results.set, ", ") + ".");
  const TableOrigin& origin = results.origin;
  if (origin.runs.empty()) return lines;
  const auto names = [](const std::set<std::string>& set) {
    return join({set.begin(), set.end()}, ", ");
  };
  std::vector<std::string> threads;
  for (const int64_t n : origin.threads) threads.push_back(std::to_string(n));
  lines.push_back(fmt::format(
      "{} {}, {:.1f} hours together, threads per run: {}; {}; Rondo at commit {}; training data "
      "{}.",
      origin.runs.size(), origin.runs.size() == 1 ? "run" : "runs", origin.hours,
      join(threads, ", "), names(origin.cpus), names(origin.commits), names(origin.data)));
  return lines;
}

std::string table_text(const TableResults& results) {
  std::string out = table_title(results) + "\n";
  for (const TableColumn& column : results.table.columns) {
    const TableLines lines = table_lines(results, column);
    if (lines.size() == 1) continue;
    out += "\n" + column.label + "\n" + aligned(lines) + rows_not_run(results, column) +
           table_trend(results, column);
  }
  if (!results.claims.empty()) out += "\nClaims\n";
  for (const ClaimResult& c : results.claims) {
    out += fmt::format("  {:<9}  {}\n             {}\n", verdict_name(c.verdict),
                       claim_text(results, c), claim_evidence(c));
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
                         {"made_by", origin_json(results.origin)},
                         {"notes", results.notes},
                         {"cells", nlohmann::json::array()},
                         {"claims", nlohmann::json::array()}};
  for (const CellResult& cell : results.cells) json["cells"].push_back(cell_json(cell));
  for (const ClaimResult& claim : results.claims) json["claims"].push_back(claim_json(claim));
  return json.dump(2) + "\n";
}

}  // namespace rondo
