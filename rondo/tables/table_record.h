// The record of a table: what its runs scored and how they were made, without weights. Small enough
// for a repository; 'rondo table show' reads it, and 'rondo table run' continues a copy of it.
#pragma once

#include <string>

namespace rondo {

// Copies the record of every run of `folder` that is finished or has diverged to `output`, and
// returns how many there are. A record holds config.toml, run.json, test.json or diverged.json, and
// of metrics.jsonl the evaluations and the last line. The results of single test items are copied
// where a row has only one seed, for claims are then judged by them.
// Error{bad_input} if `folder` is not one of 'rondo table run', or `output` holds another table.
int64_t record_table(const std::string& folder, const std::string& output);

}  // namespace rondo
