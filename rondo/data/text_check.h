// Checks text before training on it: encoding, binary files, lengths, duplicates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/data/parallel_text.h"

namespace rondo {

// A problem in one file.
struct TextProblem {
  std::string file;
  int64_t line = 0;  // 0: the whole file
  std::string what;
};

struct TextCheck {
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t lines = 0;
  int64_t words = 0;
  int64_t empty_files = 0;
  int64_t blank_lines = 0;
  int64_t duplicate_files = 0;  // with the same content as an earlier one
  int64_t duplicate_lines = 0;  // not blank, and identical to an earlier one
  int64_t longest_line = 0;     // bytes
  int64_t shortest_file = 0;    // bytes, among non-empty files
  int64_t longest_file = 0;
  std::vector<TextProblem> binary;      // not text
  std::vector<TextProblem> not_utf8;    // the first invalid line of each file
  std::vector<TextProblem> duplicates;  // files, each with the one it repeats
};

// `spec` as for list_text(). Shows progress. Error{io}; Error{bad_input} for damaged compressed
// files.
TextCheck check_text(const std::string& spec);

struct PairCheck {
  int64_t pairs = 0;
  int64_t empty = 0;      // a side is blank
  int64_t identical = 0;  // both sides are the same
  int64_t duplicates = 0;
  int64_t unequal = 0;  // one side over three times as long as the other, and over 20 bytes
  int64_t source_bytes = 0;
  int64_t target_bytes = 0;
  int64_t longest_source = 0;
  int64_t longest_target = 0;
  std::vector<TextProblem> not_utf8;  // the first hundred lines
  int64_t not_utf8_lines = 0;
};

PairCheck check_pairs(const ParallelFiles& files);

}  // namespace rondo
