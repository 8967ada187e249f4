// The record of a table: scores and provenance of its runs, without weights. Small enough for a
// repository; 'rondo table show' reads it, and 'rondo table run' can resume a copy of it.
#pragma once

#include <string>

namespace rondo {

// Copies the record of every finished or diverged run of `folder` to `output` and returns their
// number. A record contains config.toml, run.json, test.json or diverged.json, and the evaluations
// and last line of metrics.jsonl. Per-item test results are copied in columns where a row has only
// one seed, because claims are then judged by them.
// Throws Error{bad_input} if `folder` was not created by 'rondo table run', or `output` contains
// another table.
int64_t record_table(const std::string& folder, const std::string& output);

}  // namespace rondo
