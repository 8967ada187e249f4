// The results of a table: scores over seeds, the paper's figures, and the verdicts on its claims.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rondo/metrics/statistics.h"
#include "rondo/metrics/test_items.h"
#include "rondo/tables/table_run.h"

namespace rondo {

// One finished run.
struct SeedResult {
  int64_t seed = 0;
  std::string folder;
  double score = 0;
  double minutes = 0;  // of training
};

// One row in one column.
struct CellResult {
  std::string row;
  std::string column;
  std::vector<SeedResult> seeds;  // finished, by seed
  int64_t diverged = 0;
  int64_t unfinished = 0;
  MeanInterval score;  // over seeds
  double minutes = 0;  // of one run, on average
  double parameters = 0;
  double parameters_without_embeddings = 0;
  double multiply_adds = 0;
  std::optional<double> paper;

  bool was_run() const { return !seeds.empty() || diverged > 0 || unfinished > 0; }
};

enum class Verdict { holds, reversed, undecided, missing };
const char* verdict_name(Verdict verdict);

struct ClaimResult {
  TableClaim claim;
  std::string column;
  Verdict verdict = Verdict::missing;
  // How much better the row claimed to be better is, in units of the metric, with its 95 %
  // interval; negative if it is worse.
  double difference = 0;
  double low = 0;
  double high = 0;
  std::optional<double> p_value;
  std::string method;  // "paired t-test over 3 seeds"
};

// Where the finished runs of a table were trained, by what program, on what data.
struct TableOrigin {
  std::set<std::string> runs;  // folders; columns may share runs
  double hours = 0;            // of training, of all runs together
  std::set<std::string> commits, cpus, data;
  std::set<int64_t> threads;
};

struct TableResults {
  std::string folder;
  PaperTable table;
  bool mini = false;
  std::vector<std::string> set;   // keys changed in every row, as given with --set
  std::vector<CellResult> cells;  // by column, then by row
  std::vector<ClaimResult> claims;
  TableOrigin origin;
  std::string notes;  // notes.md of the folder: what its author has to say about the results

  const CellResult* cell(const std::string& column, const std::string& row) const;
};

// The seeds of a row's runs, from its folder names (seed1, seed2, …).
std::vector<int64_t> seeds_in(const std::string& folder);

// Throws Error{bad_input} if the folder was not created by 'rondo table run' or a result is
// damaged.
TableResults read_table_results(const std::string& folder);

}  // namespace rondo
