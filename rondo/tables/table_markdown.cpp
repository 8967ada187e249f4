// Table results as Markdown: one table, the claims of several, a document of several tables.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "rondo/base/text.h"
#include "rondo/tables/table_report.h"

namespace rondo {
namespace {

std::string paper_figures(const TableResults& results, const ClaimResult& c) {
  const CellResult* better = results.cell(c.column, c.claim.better);
  const CellResult* than = results.cell(c.column, c.claim.than);
  if (better == nullptr || than == nullptr) return "–";
  if (!better->paper.has_value() || !than->paper.has_value()) return "–";
  return fmt::format("{:g} vs. {:g}", *better->paper, *than->paper);
}

std::string our_figures(const TableResults& results, const ClaimResult& c) {
  const std::string& metric = results.table.column(c.column).metric;
  const auto figure = [&](const std::string& row) {
    const CellResult* cell = results.cell(c.column, row);
    if (cell == nullptr) return std::string("–");
    if (cell->seeds.empty() && cell->diverged > 0) return std::string("diverged");
    return table_score(*cell, metric);
  };
  return fmt::format("{} vs. {}", figure(c.claim.better), figure(c.claim.than));
}

std::string markdown_table(const TableLines& lines) {
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

// "hold: 12; reversed: 3; undecided: 5; not tested: 0".
std::string verdict_counts(const std::vector<TableResults>& tables) {
  std::map<Verdict, int64_t> counts;
  for (const TableResults& results : tables) {
    for (const ClaimResult& c : results.claims) ++counts[c.verdict];
  }
  return fmt::format("hold: {}; reversed: {}; undecided: {}; not tested: {}",
                     counts[Verdict::holds], counts[Verdict::reversed], counts[Verdict::undecided],
                     counts[Verdict::missing]);
}

}  // namespace

std::string table_markdown(const TableResults& results, const std::string& page) {
  std::string out = "### " + table_title(results) + "\n";
  for (const TableColumn& column : results.table.columns) {
    const TableLines lines = table_lines(results, column);
    if (lines.size() == 1) continue;
    out += "\n" + column.label + "\n\n" + markdown_table(lines);
    for (const std::string& line : {rows_not_run(results, column), table_trend(results, column)}) {
      if (!line.empty()) out += "\n" + line;
    }
  }
  if (!results.claims.empty()) out += "\n| claim | verdict | evidence |\n|---|---|---|\n";
  for (const ClaimResult& c : results.claims) {
    if (c.verdict == Verdict::missing) continue;
    out += fmt::format("| {} | {} | {} |\n", claim_text(results, c), verdict_name(c.verdict),
                       claim_evidence(c));
  }
  const size_t end = results.notes.find_last_not_of(" \n");
  if (end != std::string::npos) out += "\n" + results.notes.substr(0, end + 1) + "\n";
  for (const std::string& line : table_origins(results)) out += "\n" + line + "\n";
  if (!page.empty()) out += fmt::format("\n[Bars and learning curves]({})\n", page);
  return out;
}

std::string claims_markdown(const std::vector<TableResults>& tables) {
  std::string out =
      fmt::format("Claims of {} tables that {}.\n\n", tables.size(), verdict_counts(tables));
  out += "| claim | table | metric | paper | ours | verdict |\n|---|---|---|---:|---:|---|\n";
  for (const TableResults& results : tables) {
    for (const ClaimResult& c : results.claims) {
      if (c.verdict == Verdict::missing) continue;
      const TableColumn& column = results.table.column(c.column);
      out += fmt::format("| {} | {}, {} ({}) | {} | {} | {} | **{}** |\n", c.claim.text,
                         results.table.paper, results.table.place, column.label,
                         metric_title(column.metric), paper_figures(results, c),
                         our_figures(results, c), verdict_name(c.verdict));
    }
  }
  return out;
}

std::string results_markdown(const std::vector<TableResults>& tables,
                             const std::vector<std::string>& pages) {
  std::vector<std::string> folders;
  for (const TableResults& results : tables) folders.push_back(results.folder);
  std::string out =
      "# Results\n\n"
      "The papers' claims, tried by training. A claim *holds* if the 95 % interval of the "
      "difference lies above its margin (0 unless named), is *reversed* if the interval lies "
      "below, and is *undecided* otherwise. ± is half of the 95 % interval of a mean over seeds. "
      "The papers' figures belong to models and data of full size; at mini size only claims can "
      "be compared. Minutes are training time on cores that other work may have shared.\n\n";
  out += "Made by\n\n```\nrondo table show " + join(folders, " ") + " --markdown\n```\n\n";
  out += "## Claims\n\n" + claims_markdown(tables) + "\n## Tables\n";
  for (size_t i = 0; i < tables.size(); ++i) {
    out += "\n" + table_markdown(tables[i], pages.empty() ? "" : pages[i]);
  }
  return out;
}

}  // namespace rondo
