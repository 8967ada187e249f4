// SReT's recursion as a scheme: blocks applied several times, with residual coefficients per block
// and projections per loop (rondo/recurrence/recursive.h), and slices (rondo/recurrence/sliced.h).
#include <fmt/format.h>

#include <algorithm>

#include "rondo/config/depth_scheme.h"

namespace rondo {
namespace {

Level recursive_level(const RecursiveConfig& config, const PlanShape& shape, int64_t stage,
                      int64_t block, int64_t loop) {
  Level level;
  level.mixing = block;
  level.cross = shape.cross ? block : kNone;
  level.feed_forward = shape.feed_forward ? block : kNone;
  level.residual = config.residual == "none" ? kNone : block;
  level.loop = loop;
  level.groups = config.groups_of(stage, loop);
  borrow_norms(level, shape, block);
  return level;
}

// Internal order applies block 0 `loops` times, then block 1, and projects after every application.
// External order applies the whole list `loops` times and projects after every round.
DepthPlan recursive_plan(const DepthConfig& depth, const PlanShape& shape, int64_t stage) {
  const RecursiveConfig& config = depth.recursive;
  const int64_t blocks = config.blocks_of(stage);
  const int64_t loops = config.loops_of(stage);
  const bool projects = config.projection > 0.0;
  DepthPlan plan;
  if (config.order == "internal") {
    for (int64_t k = 0; k < blocks; ++k) {
      for (int64_t l = 0; l < loops; ++l) {
        plan.levels.push_back(recursive_level(config, shape, stage, k, l));
        if (projects) plan.levels.back().projection = k * loops + l;
      }
    }
  } else {
    for (int64_t l = 0; l < loops; ++l) {
      for (int64_t k = 0; k < blocks; ++k) {
        plan.levels.push_back(recursive_level(config, shape, stage, k, l));
      }
      if (projects) plan.levels.back().projection = l;
    }
  }
  return plan;
}

// Before anything iterates over levels.
void bound_levels(const RecursiveConfig& config, int64_t stages, const ConfigCheck& check) {
  int64_t levels = 0;
  for (int64_t s = 0; s < stages; ++s) {
    levels += config.blocks_of(s) * config.loops_of(s);
    check.require(levels <= kMaxLevels,
                  fmt::format("model.depth.recursive: blocks times loops over all stages: expected "
                              "at most {} levels, got {}",
                              kMaxLevels, levels),
                  "choose fewer blocks or loops");
  }
}

void check_recursive(const DepthConfig& depth, const DepthUse& use, const ConfigCheck& check) {
  const RecursiveConfig& config = depth.recursive;
  check.require(!config.blocks.empty() && !config.loops.empty(),
                "model.depth.recursive: blocks and loops need at least one entry",
                "give one entry per stage");
  const auto stages = static_cast<int64_t>(use.tokens.size());
  bound_levels(config, std::max<int64_t>(1, stages), check);
  for (int64_t s = 0; s < stages; ++s) {
    const int64_t tokens = use.tokens[static_cast<size_t>(s)];
    for (int64_t loop = 0; loop < config.loops_of(s); ++loop) {
      const int64_t groups = config.groups_of(s, loop);
      const std::string place =
          stages == 1 ? "" : fmt::format(", stage {}, loop {}", s + 1, loop + 1);
      check.require(tokens % groups == 0,
                    fmt::format("model.depth.recursive.groups{}: {} tokens cannot be cut into {} "
                                "equal groups",
                                place, tokens, groups),
                    "choose another image size, or groups that divide the tokens of every stage");
    }
  }
}

}  // namespace

DepthScheme recursive_scheme() {
  DepthScheme scheme;
  scheme.name = "recursive";
  scheme.plan = recursive_plan;
  scheme.check = check_recursive;
  scheme.set_loops = [](DepthConfig& config, int64_t loops) {
    config.recursive.loops.assign(config.recursive.loops.size(), loops);
  };
  scheme.loops = [](const DepthConfig& config) { return config.recursive.loops_of(0); };
  scheme.in_pyramid = true;
  scheme.without_attention = true;
  scheme.with_mixed_depth = true;
  return scheme;
}

}  // namespace rondo
