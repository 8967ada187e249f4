// The central idea: a level borrows its weights. A stack is a list of levels, each naming which
// token mixing, feed-forward and norms it uses and what is its own. Every way of sharing weights
// over depth is a short function that returns such a list (depth_scheme.h); the networks that use
// it know no paper. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "rondo/config/depth_config.h"

namespace rondo {

constexpr int64_t kNone = -1;

// One application of a block. Numbers index the stack's banks of weights; kNone = has none.
struct Level {
  int64_t mixing = 0;
  int64_t cross = kNone;
  int64_t feed_forward = 0;
  int64_t mixing_norm = 0;
  int64_t cross_norm = kNone;
  int64_t feed_forward_norm = 0;
  int64_t signal = kNone;         // own low-rank signals
  int64_t static_signal = kNone;  // 1-based number of this level in the static table
  int64_t residual = kNone;       // learnable residual coefficients
  int64_t projection = kNone;     // non-linear projection applied after this level
  int64_t loop = 0;               // which time its block is applied, from 0
  int64_t groups = 1;             // slices of the sequence that attend among themselves
  double drop_path = 0.0;
};

struct DepthPlan {
  std::vector<Level> levels;
  // Epsilon of the level norms, as the scheme's authors have it.
  double norm_epsilon = 1e-6;

  int64_t size() const { return static_cast<int64_t>(levels.size()); }
  // How many weights of each kind the plan names.
  int64_t mixings() const { return count(&Level::mixing); }
  int64_t crosses() const { return count(&Level::cross); }
  int64_t feed_forwards() const { return count(&Level::feed_forward); }
  int64_t signals() const { return count(&Level::signal); }
  int64_t residuals() const { return count(&Level::residual); }
  int64_t projections() const { return count(&Level::projection); }
  int64_t norms() const;
  // Whether levels add a code of position and level, so that the network adds none.
  bool adds_positions() const { return count(&Level::static_signal) > 0; }

 private:
  int64_t count(int64_t Level::*field) const;
};

// Which sub-layers a level has besides token mixing, and how norms are given out.
struct PlanShape {
  bool cross = false;
  bool feed_forward = true;
  // One norm per level for all its sub-layers instead of one each.
  bool one_norm_per_level = false;
};

// The plan of the scheme that `config` names; `stage` picks the entry where the configuration has
// one per stage of a pyramid. Error{bad_input} if there is no scheme of that name.
DepthPlan make_plan(const DepthConfig& config, const PlanShape& shape, int64_t stage = 0);

// Epsilon of the level norms: what the configuration says, or (0) what the scheme has.
inline double level_epsilon(double configured, const DepthPlan& plan) {
  return configured > 0.0 ? configured : plan.norm_epsilon;
}

// Gives the level the norms of owner `owner`: consecutive numbers, one per sub-layer or one for
// all.
void borrow_norms(Level& level, const PlanShape& shape, int64_t owner);

// Renumbers every bank by first use, so that no weights are made that no level uses.
void compact(DepthPlan& plan);

// The same blocks, each applied once: the shallow branch of mixed-depth training.
DepthPlan first_loops(const DepthPlan& plan);

// Drop-path rates that grow linearly from 0 with the number of a level among `total`, starting at
// `first`. A block keeps the rate of its place among the blocks in all of its loops, as SReT does.
void set_drop_path(DepthPlan& plan, double rate, int64_t first, int64_t total);

}  // namespace rondo
