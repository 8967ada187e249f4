// Training every row of a table: rows × seeds, each an ordinary run folder, several at a time. The
// same call continues after Ctrl-C, kill -9 or a power cut.
//
//   DIR/table.json            what was asked for; table.toml: a copy of the table
//   DIR/COLUMN/ROW/seedN/     run folder; test.json, test.items: its score on the test data
//   DIR/logs/                 what the runs said
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

// What has come of a job, as its folder says.
enum class JobStatus { missing, unfinished, diverged, finished };
JobStatus job_status(const std::string& folder);

// The jobs of a table in the order they are started: all rows with the first seed, then the next.
// Error{bad_input} for a configuration that cannot be trained.
std::vector<TableJob> plan_table(const PaperTable& table, const TableRunOptions& options);

// Trains and tests what is not finished. Returns the exit code: 0; 1 if runs failed (others went
// on); 130 or 143 after a signal, everything saved. A run that diverges is a result, not a failure.
int run_table(const TableRunOptions& options);

// What the whole table will take, from a few steps of every row: a table as text. Nothing is kept.
std::string table_forecast(const TableRunOptions& options);

// The table that `folder` was made for, and how. Error{bad_input} if it is no such folder.
struct TableFolder {
  PaperTable table;
  bool mini = false;
  int64_t jobs = 1;
  std::vector<std::string> set;
};
TableFolder read_table_folder(const std::string& folder);

}  // namespace rondo
