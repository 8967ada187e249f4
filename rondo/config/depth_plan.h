// The central idea: a level references its weights instead of owning them. A stack is a list of
// levels, each with the indices of the token mixing, feed-forward and norms it uses. Every scheme
// of sharing weights over depth is a short function that returns such a list (depth_scheme.h); the
// networks are independent of the papers. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "rondo/config/depth_config.h"

namespace rondo {

constexpr int64_t kNone = -1;

// One application of a block. Numbers index the stack's weight banks; kNone = absent.
struct Level {
  int64_t mixing = 0;
  int64_t cross = kNone;
  int64_t feed_forward = 0;
  int64_t mixing_norm = 0;
  int64_t cross_norm = kNone;
  int64_t feed_forward_norm = 0;
  int64_t signal = kNone;         // own low-rank signals
  int64_t static_signal = kNone;  // 1-based index of this level in the static table
  int64_t residual = kNone;       // learnable residual coefficients
  int64_t projection = kNone;     // non-linear projection applied after this level
  int64_t loop = 0;               // which application of its block this is, from 0
  int64_t groups = 1;             // groups of tokens in sliced attention
  double drop_path = 0.0;
};

struct DepthPlan {
  std::vector<Level> levels;
  // Epsilon of the level norms, as in the scheme authors' code.
  double norm_epsilon = 1e-6;

  int64_t size() const { return static_cast<int64_t>(levels.size()); }
  // The number of distinct weights of each kind.
  int64_t mixings() const { return count(&Level::mixing); }
  int64_t crosses() const { return count(&Level::cross); }
  int64_t feed_forwards() const { return count(&Level::feed_forward); }
  int64_t signals() const { return count(&Level::signal); }
  int64_t residuals() const { return count(&Level::residual); }
  int64_t projections() const { return count(&Level::projection); }
  int64_t norms() const;
  // Whether levels add a position and level encoding, so that the network adds none.
  bool adds_positions() const { return count(&Level::static_signal) > 0; }

 private:
  int64_t count(int64_t Level::*field) const;
};

// The sub-layers of a level besides token mixing, and how norms are assigned.
struct PlanShape {
  bool cross = false;
  bool feed_forward = true;
  // One norm per level, shared by its sub-layers, instead of one each.
  bool one_norm_per_level = false;
};

// The plan of the scheme in `config`; `stage` selects the entry of per-stage settings in a pyramid.
// Throws Error{bad_input} if the scheme is unknown.
DepthPlan make_plan(const DepthConfig& config, const PlanShape& shape, int64_t stage = 0);

// Epsilon of the level norms: the configured value, or the scheme's if that is 0.
inline double level_epsilon(double configured, const DepthPlan& plan) {
  return configured > 0.0 ? configured : plan.norm_epsilon;
}

// Assigns the norms of owner `owner` to the level: consecutive indices, one per sub-layer or one
// for all.
void borrow_norms(Level& level, const PlanShape& shape, int64_t owner);

// Renumbers every bank by first use, so that no unused weights are created.
void compact(DepthPlan& plan);

// The same blocks, each applied once: the shallow branch of mixed-depth training.
DepthPlan first_loops(const DepthPlan& plan);

// Sets drop-path rates that grow linearly from 0 with the block index out of `total`, starting at
// `first`. A block keeps its rate in all of its loops, as in SReT.
void set_drop_path(DepthPlan& plan, double rate, int64_t first, int64_t total);

}  // namespace rondo
