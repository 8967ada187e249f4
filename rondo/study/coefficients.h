// How the parameters that the papers add change during training (SReT's Figures 7, 15 and 16):
// residual coefficients, gates and norms of level signals, from a run's metrics.jsonl.
#pragma once

#include "rondo/study/report.h"

namespace rondo::study {

// One metric over the steps of a run.
struct Trace {
  std::string label;  // "stage 1, block 3"
  std::vector<std::pair<double, double>> points;
};

// Traces that are plotted together.
struct TraceGroup {
  std::string title;  // "token mixing, identity coefficient"
  std::vector<Trace> traces;
};

// Error{bad_input} if the run logged none (no such parameters, or trained by an older version).
std::vector<TraceGroup> read_coefficients(const std::string& run);

struct RunCoefficients {
  std::string name;
  std::vector<TraceGroup> groups;
};
StudyReport coefficients_report(const std::vector<RunCoefficients>& found);

}  // namespace rondo::study
