// Reading the runs of a table and judging its claims.
#include "rondo/tables/table_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rondo/base/error.h"
#include "rondo/base/files.h"

namespace rondo {
namespace {

constexpr int64_t kMaxJsonBytes = int64_t{64} << 20;
constexpr int64_t kMaxNotesBytes = int64_t{1} << 20;

nlohmann::json read_json(const std::string& path) {
  auto json = nlohmann::json::parse(read_text_file(path, kMaxJsonBytes), nullptr, false);
  if (json.is_object()) return json;
  throw Error(ExitCode::bad_input, fmt::format("{}: expected a JSON object", path),
              "remove it and run the same 'rondo table run' again");
}

double score_of(const std::string& file, const std::string& metric) {
  const nlohmann::json json = read_json(file);
  const nlohmann::json::json_pointer place("/metrics/" + metric + "/score");
  if (json.contains(place) && json[place].is_number()) return json[place];
  throw Error(ExitCode::bad_input, fmt::format("{}: has no score '{}'", file, metric),
              "remove it and run the same 'rondo table run' again");
}

// From the last line of the metrics that has it.
double training_seconds(const std::string& folder) {
  std::ifstream file(folder + "/metrics.jsonl");
  double seconds = 0;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object()) seconds = json.value("seconds", seconds);
  }
  return seconds;
}

// Reads the record of `rondo train` (run.json) into the cell and the origin.
void read_origin(const std::string& folder, CellResult& cell, double& minutes,
                 TableOrigin& origin) {
  const std::string file = folder + "/run.json";
  if (!exists(file)) return;
  const nlohmann::json json = read_json(file);
  cell.parameters = json.value("parameters", 0.0);
  cell.parameters_without_embeddings = json.value("parameters_without_embeddings", 0.0);
  cell.multiply_adds = json.value("multiply_adds", 0.0);
  minutes = training_seconds(folder) / 60;
  if (origin.runs.insert(folder).second) origin.hours += minutes / 60;
  origin.commits.insert(json.value("commit", "unknown"));
  origin.cpus.insert(json.value("cpu", "unknown CPU"));
  origin.data.insert(json.value("train_data", "unknown"));
  origin.threads.insert(json.value("threads", int64_t{0}));
}

CellResult read_cell(const std::string& folder, const PaperTable& table, const TableColumn& column,
                     const TableRow& row, TableOrigin& origin) {
  CellResult cell;
  cell.row = row.name;
  cell.column = column.name;
  if (const auto paper = row.paper.find(column.name); paper != row.paper.end()) {
    cell.paper = paper->second;
  }
  const std::string runs = fmt::format("{}/{}/{}", folder, table.runs_of(column).name, row.name);
  std::vector<double> scores;
  for (const int64_t seed : seeds_in(runs)) {
    const std::string run = fmt::format("{}/seed{}", runs, seed);
    const JobStatus status = job_status(run);
    if (status == JobStatus::diverged) ++cell.diverged;
    if (status == JobStatus::unfinished) ++cell.unfinished;
    if (status != JobStatus::finished) continue;
    SeedResult result{seed, run, score_of(run + "/test.json", column.metric), 0};
    read_origin(run, cell, result.minutes, origin);
    cell.seeds.push_back(result);
    cell.minutes += result.minutes;
    scores.push_back(result.score);
  }
  if (!scores.empty()) cell.minutes /= static_cast<double>(scores.size());
  cell.score = mean_interval(scores);
  return cell;
}

// Scores of both cells for common seeds, in order.
struct Pairs {
  std::vector<double> a, b;
  std::vector<std::pair<std::string, std::string>> folders;
};

Pairs common_seeds(const CellResult& a, const CellResult& b) {
  Pairs pairs;
  for (const SeedResult& x : a.seeds) {
    for (const SeedResult& y : b.seeds) {
      if (x.seed != y.seed) continue;
      pairs.a.push_back(x.score);
      pairs.b.push_back(y.score);
      pairs.folders.emplace_back(x.folder, y.folder);
    }
  }
  return pairs;
}

void judge_by_items(const Pairs& pairs, const std::string& metric, double sign, ClaimResult& c) {
  const TestItems a = TestItems::load(pairs.folders[0].first + "/test.items");
  const TestItems b = TestItems::load(pairs.folders[0].second + "/test.items");
  const Comparison compared = compare_items(metric, a, b);
  c.difference = sign * (compared.a - compared.b);
  c.low = sign > 0 ? compared.difference.low : -compared.difference.high;
  c.high = sign > 0 ? compared.difference.high : -compared.difference.low;
  if (c.claim.margin == 0) c.p_value = compared.exact.value_or(compared.p_value);
  c.method = fmt::format("one seed: paired bootstrap over {} test items{}", a.items.size(),
                         compared.exact.has_value() ? ", p by McNemar's test" : "");
}

void judge_by_seeds(const Pairs& pairs, double sign, ClaimResult& c) {
  std::vector<double> ours;
  std::vector<double> theirs;
  for (size_t i = 0; i < pairs.a.size(); ++i) {
    ours.push_back(sign * pairs.a[i] - c.claim.margin);
    theirs.push_back(sign * pairs.b[i]);
  }
  const PairedTest test = paired_t_test(ours, theirs);
  c.difference = test.difference.mean + c.claim.margin;
  c.low = test.difference.low + c.claim.margin;
  c.high = test.difference.high + c.claim.margin;
  c.p_value = test.p_value;
  c.method = fmt::format("paired t-test over {} seeds", pairs.a.size());
}

ClaimResult judge(const TableClaim& claim, const CellResult& a, const CellResult& b,
                  const TableColumn& column) {
  ClaimResult result;
  result.claim = claim;
  result.column = column.name;
  const double sign = larger_is_better(column.metric) ? 1 : -1;
  const Pairs pairs = common_seeds(a, b);
  if (pairs.a.empty()) {
    // A row that never converges is worse than one that does.
    if (!a.seeds.empty() && b.seeds.empty() && b.diverged > 0) result.verdict = Verdict::holds;
    if (!b.seeds.empty() && a.seeds.empty() && a.diverged > 0) result.verdict = Verdict::reversed;
    if (result.verdict != Verdict::missing) result.method = "the other row diverged";
    return result;
  }
  if (pairs.a.size() == 1) {
    judge_by_items(pairs, column.metric, sign, result);
  } else {
    judge_by_seeds(pairs, sign, result);
  }
  result.verdict = result.low > claim.margin    ? Verdict::holds
                   : result.high < claim.margin ? Verdict::reversed
                                                : Verdict::undecided;
  return result;
}

}  // namespace

std::vector<int64_t> seeds_in(const std::string& folder) {
  std::vector<int64_t> seeds;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("seed", 0) != 0) continue;
    const int64_t seed = std::strtoll(name.c_str() + 4, nullptr, 10);
    if (seed > 0 && name == "seed" + std::to_string(seed)) seeds.push_back(seed);
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "holds";
    case Verdict::reversed:
      return "reversed";
    case Verdict::undecided:
      return "undecided";
    default:
      return "not run";
  }
}

const CellResult* TableResults::cell(const std::string& column, const std::string& row) const {
  for (const CellResult& c : cells) {
    if (c.column == column && c.row == row) return &c;
  }
  return nullptr;
}

TableResults read_table_results(const std::string& folder) {
  const TableFolder made = read_table_folder(folder);
  TableResults results;
  results.folder = folder;
  results.table = made.table;
  results.mini = made.mini;
  results.set = made.set;
  const std::string notes = folder + "/notes.md";
  if (exists(notes)) results.notes = read_text_file(notes, kMaxNotesBytes);
  for (const TableColumn& column : made.table.columns) {
    for (const TableRow& row : made.table.rows) {
      if (row.has(column.name))
        results.cells.push_back(read_cell(folder, made.table, column, row, results.origin));
    }
  }
  for (const TableClaim& claim : made.table.claims) {
    for (const TableColumn& column : made.table.columns) {
      if (!claim.column.empty() && claim.column != column.name) continue;
      const CellResult* a = results.cell(column.name, claim.better);
      const CellResult* b = results.cell(column.name, claim.than);
      if (a != nullptr && b != nullptr) results.claims.push_back(judge(claim, *a, *b, column));
    }
  }
  return results;
}

}  // namespace rondo
