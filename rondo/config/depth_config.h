// Configuration of weight sharing over depth: [model.depth]. Torch-free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "rondo/base/config.h"

namespace rondo {

// Maximum levels of a stack, or of all stages of a pyramid together. The deepest published model
// has a thousand; more than ten times that is a mistake or a corrupt file.
constexpr int64_t kMaxLevels = 10000;

// RingFormer's level signals, with the ablations of its Table 4.
struct RingConfig {
  int64_t rank = 0;
  int64_t rank_divisor = 16;
  int64_t feed_forward_rank = 0;
  bool full_rank = false;
  std::string attention = "after";
  std::string feed_forward = "before";

  int64_t rank_for(int64_t width) const {
    return rank > 0 ? rank : std::max<int64_t>(1, width / rank_divisor);
  }
  int64_t feed_forward_rank_for(int64_t width) const {
    return feed_forward_rank > 0 ? feed_forward_rank : rank_for(width);
  }
};

template <class V>
void describe(V& v, RingConfig& c) {
  v.field("rank", c.rank, "rank of the level signals; 0 = width / rank_divisor", between(0, 65536));
  v.field("rank_divisor", c.rank_divisor, "rank = width / this, rounded down", between(1, 65536));
  v.field("feed_forward_rank", c.feed_forward_rank,
          "rank of the feed-forward signal; 0 = same as the others", between(0, 65536));
  v.field("full_rank", c.full_rank,
          "one full-rank matrix per signal instead of two low-rank factors");
  v.field("attention", c.attention,
          "where signals are added: after or before the query, key and value projections",
          one_of({"after", "before", "none"}));
  v.field("feed_forward", c.feed_forward,
          "where the signal is added: to the feed-forward input (before), or before its activation "
          "(inter)",
          one_of({"before", "inter", "none"}));
}

// SReT's recursion: blocks, loops over them, and its extras. Lists have one entry per stage of a
// pyramid; a network without stages has one entry.
struct RecursiveConfig {
  std::vector<int64_t> blocks = {12};
  std::vector<int64_t> loops = {1};
  std::string order = "internal";
  std::string residual = "none";
  double projection = 0.0;
  std::vector<std::vector<int64_t>> groups;
  std::string permutation = "P+I-L";
  std::string eval_permutation = "fixed";

  // Stages without their own entry use the last one.
  int64_t blocks_of(int64_t stage) const { return blocks.at(clamp(stage, blocks.size())); }
  int64_t loops_of(int64_t stage) const { return loops.at(clamp(stage, loops.size())); }
  int64_t groups_of(int64_t stage, int64_t loop) const {
    if (groups.empty()) return 1;
    const auto& row = groups.at(clamp(stage, groups.size()));
    return row.empty() ? 1 : row.at(clamp(loop, row.size()));
  }

 private:
  static size_t clamp(int64_t index, size_t size) {
    return std::min(static_cast<size_t>(index), size - 1);
  }
};

template <class V>
void describe(V& v, RecursiveConfig& c) {
  v.field("blocks", c.blocks, "distinct blocks, per stage", between(1, kMaxLevels));
  v.field("loops", c.loops, "applications of each block, per stage", between(1, kMaxLevels));
  v.field("order", c.order,
          "internal: repeat each block; external: repeat the whole list of blocks",
          one_of({"internal", "external"}));
  v.field("residual", c.residual, "branches with learnable residual coefficients",
          one_of({"none", "identity", "branch", "both"}));
  v.field("projection", c.projection,
          "hidden ratio of the non-linear projection after every loop; 0 = none", between(0, 64));
  v.field("groups", c.groups,
          "number of groups in sliced attention, [[loop 1, loop 2], ...] by stage",
          between(1, 1 << 20));
  v.field("permutation", c.permutation,
          "permute tokens before later sliced loops, and invert after",
          one_of({"P", "P+I", "P+I-L"}));
  v.field("eval_permutation", c.eval_permutation, "permutations during evaluation",
          one_of({"fixed", "random"}));
}

// The names of all schemes (depth_scheme.h).
std::vector<std::string> depth_scheme_names();

struct DepthConfig {
  std::string scheme = "vanilla";
  int64_t levels = 6;
  RingConfig ring;
  RecursiveConfig recursive;
};

template <class V>
void describe(V& v, DepthConfig& c) {
  v.field("scheme", c.scheme, "how levels share weights", one_of(depth_scheme_names()));
  v.field("levels", c.levels, "number of levels L (recursive: set by blocks and loops instead)",
          between(1, kMaxLevels));
  v.section("ring", c.ring, "scheme ring: level signals");
  v.section("recursive", c.recursive, "scheme recursive: blocks, loops, slices");
}

}  // namespace rondo
