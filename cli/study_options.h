// Options of `study` and `report`, described in cli/describe_study.cpp.
#pragma once

#include "cli/verbs.h"

namespace rondo::cli {

// `study KIND`: cli/describe_study.cpp selects the options of each kind.
struct StudyOptions {
  std::string kind;
  std::vector<std::string> runs;
  std::string data;
  std::string split = "test";
  std::string tokenizer;
  std::string cache;
  std::string output;  // .html or .svg
  bool json = false;
  int64_t items = 0;  // 0: the kind's own
  LoadOptions load;
  ComputeOptions compute;
  std::string estimator = "auto";   // cka
  int64_t tokens = 100000;          // state
  int64_t excerpt = 1500;           // state: tokens shown
  std::vector<std::string> inputs;  // activations: images or a sentence
  std::vector<std::string> levels;  // activations
  int64_t channels = 6;             // activations
  int64_t points = 25;              // landscape, on a side
  double radius = 1.0;              // landscape
  int64_t jobs = 2;                 // landscape: processes
  uint64_t seed = 1;                // landscape
  std::string part;                 // landscape: share of a child process
};

// `report`
struct RunReportOptions {
  std::vector<std::string> runs;
  std::string output;
  bool json = false;
};

void describe(OptionVisitor& v, StudyOptions& o);
void describe(OptionVisitor& v, RunReportOptions& o);

}  // namespace rondo::cli
