// The table of depth schemes.
#include "rondo/config/depth_scheme.h"

namespace rondo {
namespace {

std::list<DepthScheme> own_schemes() {
  return {
      vanilla_scheme(),    // every level owns everything
      universal_scheme(),  // one block, told the level by a static table
      one_wide_scheme(),   // one feed-forward
      ring_scheme(),       // one block, nudged by signals of each level
      recursive_scheme(),  // some blocks, each several times
  };
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

}  // namespace rondo
