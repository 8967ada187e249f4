// Claims of several tables in one list: the paper's figures, our figures, the verdict.
#include <fmt/format.h>

#include <cmath>

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

}  // namespace

std::string claims_markdown(const std::vector<TableResults>& tables) {
  std::string out =
      "| claim | table | metric | paper | ours | verdict |\n|---|---|---|---:|---:|---|\n";
  int64_t not_run = 0;
  for (const TableResults& results : tables) {
    for (const ClaimResult& c : results.claims) {
      if (c.verdict == Verdict::missing) {
        ++not_run;
        continue;
      }
      const TableColumn& column = results.table.column(c.column);
      out += fmt::format("| {} | {}, {} ({}) | {} | {} | {} | **{}** |\n", c.claim.text,
                         results.table.paper, results.table.place, column.label,
                         metric_title(column.metric), paper_figures(results, c),
                         our_figures(results, c), verdict_name(c.verdict));
    }
  }
  if (not_run > 0) out += fmt::format("\nClaims of these tables not tested: {}.\n", not_run);
  return out;
}

}  // namespace rondo
