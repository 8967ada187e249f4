// The sharing schemes, one function and one file each; make_plan() holds the table of their names.
#pragma once

#include "rondo/recurrence/depth_plan.h"

namespace rondo {

DepthPlan vanilla_plan(const DepthConfig& config, const PlanShape& shape, int64_t stage);
DepthPlan universal_plan(const DepthConfig& config, const PlanShape& shape, int64_t stage);
DepthPlan one_wide_plan(const DepthConfig& config, const PlanShape& shape, int64_t stage);
DepthPlan ring_plan(const DepthConfig& config, const PlanShape& shape, int64_t stage);
DepthPlan recursive_plan(const DepthConfig& config, const PlanShape& shape, int64_t stage);

// Gives the level the norms of owner `owner`: consecutive numbers, one per sub-layer or one for
// all.
void borrow_norms(Level& level, const PlanShape& shape, int64_t owner);

}  // namespace rondo
