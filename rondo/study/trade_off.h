// Cost against quality: multiply-adds of attention by groups and loops (SReT's Theorem 1) for
// sliced networks, and scores of runs against parameters and multiply-adds.
#pragma once

#include "rondo/model/cost.h"
#include "rondo/study/report.h"

namespace rondo::study {

struct SlicedCostPoint {
  int64_t loops = 1, groups = 1;
  double attention = 0;      // multiply-adds of scores and values
  double multiply_adds = 0;  // of the whole network
};

// The cost of the network with each number of loops and groups in every stage, counted in a
// shape-only forward pass. Combinations whose groups do not divide the tokens of some stage are
// skipped. Empty if the network is not recursive.
std::vector<SlicedCostPoint> sliced_costs(const ModelConfig& config,
                                          const std::vector<int64_t>& loops,
                                          const std::vector<int64_t>& groups);

struct RunCost {
  std::string name;
  std::string task;
  double parameters = 0;
  double multiply_adds = 0;
  std::optional<double> score;  // the best in the run's log
  std::string metric;           // its title
  std::vector<SlicedCostPoint> sliced;
};

StudyReport cost_report(const std::vector<RunCost>& found);

}  // namespace rondo::study
