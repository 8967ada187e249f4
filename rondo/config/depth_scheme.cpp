// The table of depth schemes.
#include "rondo/config/depth_scheme.h"

namespace rondo {
namespace {

std::list<DepthScheme> own_schemes() {
  return {
      vanilla_scheme(),    // every level has its own weights
      universal_scheme(),  // one block, with a static table of levels added
      one_wide_scheme(),   // one shared feed-forward
      ring_scheme(),       // one block, adjusted by per-level signals
      recursive_scheme(),  // several blocks, each applied several times
  };
}

// The projection of `trained` that follows the same block in the same loop as projection `index` of
// `now`. kNone: there is none.
int64_t trained_projection(int64_t index, const DepthPlan& now, const DepthPlan& trained) {
  for (const Level& level : now.levels) {
    if (level.projection != index) continue;
    for (const Level& other : trained.levels) {
      if (other.mixing == level.mixing && other.loop == level.loop) return other.projection;
    }
  }
  return kNone;
}

}  // namespace

Registry<DepthScheme>& depth_schemes() {
  static Registry<DepthScheme> schemes("model.depth.scheme", own_schemes());
  return schemes;
}

std::vector<std::string> depth_scheme_names() { return depth_schemes().names(); }

DepthPlan make_plan(const DepthConfig& config, const PlanShape& shape, int64_t stage) {
  return depth_schemes().find(config.scheme).plan(config, shape, stage);
}

int64_t loops_of(const DepthConfig& config) {
  const DepthScheme& scheme = depth_schemes().find(config.scheme);
  return scheme.loops == nullptr ? 0 : scheme.loops(config);
}

std::string name_in_training(const std::string& name, const DepthPlan& now,
                             const DepthPlan& trained) {
  const std::string key = "projection.";
  const size_t at = name.find(key);
  if (at == std::string::npos) return name;
  const size_t number = at + key.size();
  size_t digits = 0;
  const int64_t index = std::stoll(name.substr(number), &digits);
  return name.substr(0, number) + std::to_string(trained_projection(index, now, trained)) +
         name.substr(number + digits);
}

}  // namespace rondo
