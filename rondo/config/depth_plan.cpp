// Operations common to all plans.
#include "rondo/config/depth_plan.h"

#include <algorithm>
#include <initializer_list>
#include <map>

namespace rondo {
namespace {

// Renumbers by first use over all `fields`, which share one bank.
void renumber(DepthPlan& plan, std::initializer_list<int64_t Level::*> fields) {
  std::map<int64_t, int64_t> numbers;
  for (Level& level : plan.levels) {
    for (int64_t Level::*field : fields) {
      int64_t& number = level.*field;
      if (number == kNone) continue;
      number = numbers.emplace(number, static_cast<int64_t>(numbers.size())).first->second;
    }
  }
}

}  // namespace

int64_t DepthPlan::count(int64_t Level::*field) const {
  int64_t highest = kNone;
  for (const Level& level : levels) highest = std::max(highest, level.*field);
  return highest + 1;
}

int64_t DepthPlan::norms() const {
  return std::max(
      {count(&Level::mixing_norm), count(&Level::cross_norm), count(&Level::feed_forward_norm)});
}

void borrow_norms(Level& level, const PlanShape& shape, int64_t owner) {
  const int64_t each = shape.one_norm_per_level ? 0 : 1;
  const int64_t per_owner = each * (int64_t{shape.cross} + int64_t{shape.feed_forward}) + 1;
  int64_t next = owner * per_owner;
  level.mixing_norm = next;
  level.cross_norm = shape.cross ? next += each : kNone;
  level.feed_forward_norm = shape.feed_forward ? next += each : kNone;
}

void compact(DepthPlan& plan) {
  renumber(plan, {&Level::mixing});
  renumber(plan, {&Level::cross});
  renumber(plan, {&Level::feed_forward});
  renumber(plan, {&Level::mixing_norm, &Level::cross_norm, &Level::feed_forward_norm});
  renumber(plan, {&Level::signal});
  renumber(plan, {&Level::residual});
  renumber(plan, {&Level::projection});
}

DepthPlan first_loops(const DepthPlan& plan) {
  DepthPlan shallow;
  shallow.norm_epsilon = plan.norm_epsilon;
  std::copy_if(plan.levels.begin(), plan.levels.end(), std::back_inserter(shallow.levels),
               [](const Level& level) { return level.loop == 0; });
  return shallow;
}

void set_drop_path(DepthPlan& plan, double rate, int64_t first, int64_t total) {
  for (Level& level : plan.levels) {
    level.drop_path = rate * static_cast<double>(first + level.mixing) / static_cast<double>(total);
  }
}

}  // namespace rondo
