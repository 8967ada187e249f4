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
