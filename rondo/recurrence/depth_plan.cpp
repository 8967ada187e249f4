// The registry of sharing schemes, and what holds for every plan.
#include "rondo/recurrence/depth_plan.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>

#include "rondo/base/error.h"
#include "rondo/recurrence/schemes.h"

namespace rondo {
namespace {

struct Scheme {
  const char* name;
  DepthPlan (*plan)(const DepthConfig&, const PlanShape&, int64_t);
};

constexpr std::array<Scheme, 5> kSchemes = {{
    {"vanilla", vanilla_plan},
    {"universal", universal_plan},
    {"one-wide", one_wide_plan},
    {"ring", ring_plan},
    {"recursive", recursive_plan},
}};

// New numbers by first use over all `fields`, which share one bank.
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

DepthPlan make_plan(const DepthConfig& config, const PlanShape& shape, int64_t stage) {
  for (const Scheme& scheme : kSchemes) {
    if (config.scheme == scheme.name) return scheme.plan(config, shape, stage);
  }
  throw Error(ExitCode::bad_input, "depth.scheme: unknown scheme '" + config.scheme + "'",
              "choose one of vanilla, universal, one-wide, ring, recursive");
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
