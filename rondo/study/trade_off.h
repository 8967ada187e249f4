// What a model costs and what it gives: multiply-adds of attention by groups and loops (SReT's
// Theorem 1) for sliced networks, and scores of runs against parameters and multiply-adds.
#pragma once

#include "rondo/model/cost.h"
#include "rondo/study/report.h"

namespace rondo::study {

struct SlicedCostPoint {
  int64_t loops = 1, groups = 1;
  double attention = 0;      // multiply-adds of scores and values
  double multiply_adds = 0;  // of the whole network
};

// The network with so many loops of so many groups in every stage, counted by walking through it.
// Combinations whose groups do not divide the tokens of some stage are left out. Empty if the
// network is not recursive.
std::vector<SlicedCostPoint> sliced_costs(const ModelConfig& config,
                                          const std::vector<int64_t>& loops,
                                          const std::vector<int64_t>& groups);

struct RunCost {
  std::string name;
  std::string task;
  double parameters = 0;
  double multiply_adds = 0;
  std::optional<double> score;  // the best of the run's log
  std::string metric;           // title
  std::vector<SlicedCostPoint> sliced;
};

StudyReport cost_report(const std::vector<RunCost>& found);

}  // namespace rondo::study
