// Table results for people (text, Markdown, HTML) and programs (JSON).
#pragma once

#include <string>
#include <vector>

#include "rondo/tables/table_results.h"

namespace rondo {

std::string table_text(const TableResults& results);
// `page`: a link to the table's page, unless empty.
std::string table_markdown(const TableResults& results, const std::string& page = "");
std::string table_json(const TableResults& results);
// The claims of several tables in one Markdown table: claim, paper, ours, verdict; how many hold.
std::string claims_markdown(const std::vector<TableResults>& tables);
// A document of several tables: their claims, then every table. `pages`: a link for each table, or
// none at all.
std::string results_markdown(const std::vector<TableResults>& tables,
                             const std::vector<std::string>& pages);
// A self-contained page: bars with intervals, and learning curves by step.
std::string table_html(const TableResults& results);

// "RingFormer, Table 4: … (mini size)".
std::string table_title(const TableResults& results);
// One column: its header, then a line for each row that was run.
using TableLines = std::vector<std::vector<std::string>>;
TableLines table_lines(const TableResults& results, const TableColumn& column);
// "Not run: XL:1024, …." with a newline; empty if every row was run.
std::string rows_not_run(const TableResults& results, const TableColumn& column);

// The metric logged during training that corresponds to a column's metric.
std::string logged_metric(const std::string& metric);
// How far the curves are from flat: the change of that metric in the last quarter of training, or
// since the evaluation before; with a newline. Empty if rows were evaluated at different steps.
std::string table_trend(const TableResults& results, const TableColumn& column);

// "Set in every row: train.steps=500.", "12 runs, 8.2 hours together, …."
std::vector<std::string> table_origins(const TableResults& results);

// "8.94 M"; "–" for 0.
std::string table_count(double count);
// "1.3021 ± 0.0043", "1.3021" without an interval, "–" without a score.
std::string table_score(const CellResult& cell, const std::string& metric);
// Its text, with the column's label if the table has several.
std::string claim_text(const TableResults& results, const ClaimResult& claim);
// "difference +0.013 [0.004, 0.022], p = 0.02, paired t-test over 3 seeds".
std::string claim_evidence(const ClaimResult& claim);
// "bits per token ↓".
std::string metric_title(const std::string& metric);

}  // namespace rondo
