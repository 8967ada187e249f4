// Table results as an HTML page.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "rondo/report/charts.h"
#include "rondo/report/page.h"
#include "rondo/report/run_curves.h"
#include "rondo/tables/table_report.h"

namespace rondo {
namespace {

// The mean over seeds at every step that all seeds logged.
Series mean_curve(const CellResult& cell, const std::string& label, const std::string& key) {
  std::map<double, std::pair<double, size_t>> sums;
  for (const SeedResult& seed : cell.seeds) {
    for (const auto& [step, value] : read_curve(seed.folder, key)) {
      sums[step].first += value;
      ++sums[step].second;
    }
  }
  Series series{label};
  for (const auto& [step, sum] : sums) {
    if (sum.second != cell.seeds.size()) continue;
    series.points.emplace_back(step, sum.first / static_cast<double>(sum.second));
  }
  return series;
}

void add_column(Page& page, const TableResults& results, const TableColumn& column) {
  const TableLines lines = table_lines(results, column);
  if (lines.size() == 1) return;  // not run
  page.heading(column.label);
  BarChart bars;
  bars.unit = metric_title(column.metric);
  LineChart curves;
  curves.x.label = "step";
  curves.y.label = logged_metric(column.metric);
  for (const CellResult& cell : results.cells) {
    if (cell.column != column.name || !cell.was_run()) continue;
    const std::string& label = results.table.row(cell.row).label;
    Bar bar{label, std::nullopt, std::nullopt};
    if (!cell.seeds.empty()) bar.value = cell.score.mean;
    if (std::isfinite(cell.score.high) && !cell.seeds.empty()) {
      bar.interval = {cell.score.low, cell.score.high};
    }
    bars.bars.push_back(bar);
    Series series = mean_curve(cell, label, curves.y.label);
    if (!series.points.empty()) curves.series.push_back(std::move(series));
  }
  page.table(lines);
  if (const std::string rest = rows_not_run(results, column); !rest.empty()) page.paragraph(rest);
  if (const std::string trend = table_trend(results, column); !trend.empty()) page.paragraph(trend);
  page.figure(bar_chart(bars), "Mean over seeds on the test data, with 95 % intervals.");
  if (!curves.series.empty()) {
    page.figure(line_chart(curves),
                fmt::format("Mean over seeds of {} during training.", curves.y.label));
  }
}

}  // namespace

std::string table_html(const TableResults& results) {
  Page page(table_title(results));
  for (const TableColumn& column : results.table.columns) add_column(page, results, column);
  if (!results.claims.empty()) {
    page.heading("Claims");
    std::string rows =
        "<table class=\"words\"><tr><th>claim</th><th>verdict</th><th>evidence</th></tr>";
    for (const ClaimResult& c : results.claims) {
      if (c.verdict == Verdict::missing) continue;
      rows += fmt::format("<tr><td>{}</td><td class=\"short\"><b>{}</b></td><td>{}</td></tr>",
                          escape_html(claim_text(results, c)), verdict_name(c.verdict),
                          escape_html(claim_evidence(c)));
    }
    page.raw(rows + "</table>\n");
  }
  for (const std::string& line : table_origins(results)) page.paragraph(line);
  return page.html();
}

}  // namespace rondo
