// Training every row of a table: rows × seeds, each a regular run folder, several in parallel. The
// same call resumes after Ctrl-C, kill -9 or a power failure.
//
//   DIR/table.json            the request; table.toml: a copy of the table
//   DIR/COLUMN/ROW/seedN/     run folder; test.json, test.items: its score on the test data
//   DIR/logs/                 logs of the runs
#pragma once

#include <string>
#include <vector>

#include "rondo/config/paper_table.h"

namespace rondo {

struct TableRunOptions {
  std::string table;  // a name or a path
  std::string output;
  bool mini = false;
  int64_t seeds = 3;
  int64_t jobs = 1;
  std::vector<std::string> rows;     // empty = all
  std::vector<std::string> columns;  // empty = all
  std::vector<std::string> data;     // NAME=DIR
  std::vector<std::string> set;
  std::string cache;
  std::string program;  // the command that trains
};

// One row in one column with one seed.
struct TableJob {
  std::string row;
  std::string column;
  int64_t seed = 1;
  std::string folder;
  std::vector<std::string> needs;  // folders of other jobs that must be finished first
  int64_t steps = 0;
};

// The status of a job, from its folder.
enum class JobStatus { missing, unfinished, diverged, finished };
JobStatus job_status(const std::string& folder);

// The jobs of a table in starting order: all rows with the first seed, then the next. Throws
// Error{bad_input} for an invalid configuration.
std::vector<TableJob> plan_table(const PaperTable& table, const TableRunOptions& options);

// Trains and tests unfinished jobs. Returns 0, or 128 + signal (such as 130 or 143) after a signal,
// with everything saved. Throws Error{failure} (exit code 1) at the end if runs failed; the others
// still complete. A diverged run is a result, not a failure.
int run_table(const TableRunOptions& options);

// Estimates the cost of the whole table from a few steps per row, as text. Keeps no files.
std::string table_forecast(const TableRunOptions& options);

// The table and options of `folder`. Throws Error{bad_input} if it is not a table folder.
struct TableFolder {
  PaperTable table;
  bool mini = false;
  int64_t jobs = 1;
  std::vector<std::string> set;
};
TableFolder read_table_folder(const std::string& folder);

}  // namespace rondo
