// Which configurations have a meaning. Everything here is about combinations; single values are
// bounded where they are declared.
#include <fmt/format.h>

#include <algorithm>

#include "rondo/base/error.h"
#include "rondo/config/model_config.h"

namespace rondo {
namespace {

// Attention compares all of them with all others: this is far beyond any memory already.
constexpr int64_t kMaxImageTokens = 1 << 20;

class Checker {
 public:
  explicit Checker(std::string name) : name_(std::move(name)) {}

  void require(bool holds, const std::string& what, const std::string& advice) const {
    if (!holds) throw Error(ExitCode::bad_input, fmt::format("{}: {}", name_, what), advice);
  }

  void heads_divide(int64_t width, int64_t heads, const char* key) const {
    require(width % heads == 0,
            fmt::format("{}: expected a divisor of the width {}, got {}", key, width, heads),
            "attention splits the width evenly over its heads");
  }

  void no_groups(const DepthConfig& depth, const char* why) const {
    const auto& groups = depth.recursive.groups;
    const bool sliced = std::any_of(groups.begin(), groups.end(), [](const auto& row) {
      return std::any_of(row.begin(), row.end(), [](int64_t g) { return g != 1; });
    });
    require(!sliced, fmt::format("model.depth.recursive.groups: {}", why), "leave groups out here");
  }

  // Before anything is counted through by levels.
  void levels_bounded(const DepthConfig& depth, int64_t stages) const {
    int64_t levels = depth.scheme == "recursive" ? 0 : depth.levels;
    for (int64_t s = 0; s < stages && depth.scheme == "recursive"; ++s) {
      levels += depth.recursive.blocks_of(s) * depth.recursive.loops_of(s);
      require(levels <= kMaxLevels,
              fmt::format("model.depth.recursive: blocks times loops of all stages: expected at "
                          "most {} levels, got {}",
                          kMaxLevels, levels),
              "choose fewer blocks or loops");
    }
    require(levels <= kMaxLevels,
            fmt::format("model.depth.levels: expected at most {}, got {}", kMaxLevels, levels),
            "choose fewer levels");
  }

  void tokens_bounded(int64_t side) const {
    require(side * side <= kMaxImageTokens,
            fmt::format("model.image: expected an image of at most {} tokens, got {} x {}",
                        kMaxImageTokens, side, side),
            "choose a smaller image or larger patches");
  }

  void groups_divide(int64_t tokens, int64_t groups, const std::string& place) const {
    require(tokens % groups == 0,
            fmt::format("{}: {} tokens cannot be cut into {} equal groups", place, tokens, groups),
            "choose another image size, or groups that divide the tokens of every stage");
  }

  void check(const EncoderDecoderConfig& c) const {
    heads_divide(c.width, c.heads, "model.heads");
    no_groups(c.depth, "sliced attention has no meaning for sentences, whose lengths vary");
    require(c.style != "fairseq" || (c.width % 2 == 0 && c.width >= 4),
            fmt::format("model.width: fairseq positions need an even width of at least 4, got {}",
                        c.width),
            "choose an even width");
    const int64_t smaller = std::min(c.source_vocabulary, c.target_vocabulary);
    require(c.padding < smaller,
            fmt::format("model.padding: expected a token below {}, got {}", smaller, c.padding),
            "padding is a token of both vocabularies");
  }

  void check(const VisionConfig& c) const {
    require(
        c.image % c.patch == 0,
        fmt::format("model.image: expected a multiple of the patch {}, got {}", c.patch, c.image),
        "choose another image size or patch");
    if (c.mixing == "attention") heads_divide(c.width, c.heads, "model.heads");
    require(c.mixing == "attention" || c.depth.scheme == "vanilla" || c.depth.scheme == "recursive",
            fmt::format("model.depth.scheme: '{}' has no meaning with model.mixing = feed-forward",
                        c.depth.scheme),
            "a Mixer has no attention to signal to; use vanilla or recursive");
    require(c.mixing == "attention" || c.pool == "mean",
            "model.pool: a token feed-forward mixes patches only",
            "set model.pool = \"mean\" with model.mixing = \"feed-forward\"");
    require(c.depth.scheme != "universal" || c.positions == "none",
            "model.positions: universal levels add their own position code",
            "set model.positions = \"none\"");
    mixed_depth(c.mixed_depth, c.depth);
    const int64_t side = c.image / c.patch;
    tokens_bounded(side);
    if (c.depth.scheme != "recursive") return;
    const int64_t tokens = side * side + (c.pool == "class" ? 1 : 0);
    for (int64_t loop = 0; loop < c.depth.recursive.loops_of(0); ++loop) {
      groups_divide(tokens, c.depth.recursive.groups_of(0, loop), "model.depth.recursive.groups");
    }
  }

  void check(const PyramidConfig& c) const {
    require(!c.widths.empty() && c.widths.size() == c.heads.size(),
            fmt::format("model.heads: expected one entry per stage, {} as in widths, got {}",
                        c.widths.size(), c.heads.size()),
            "widths and heads are lists of equal length");
    for (size_t s = 0; s < c.widths.size(); ++s) {
      heads_divide(c.widths[s], c.heads[s], "model.heads");
      require(s == 0 || c.widths[s] % c.widths[s - 1] == 0,
              fmt::format("model.widths: expected a multiple of {} in stage {}, got {}",
                          s == 0 ? 0 : c.widths[s - 1], s, c.widths[s]),
              "the convolution between stages has one group per channel it reads");
    }
    require(c.depth.scheme == "vanilla" || c.depth.scheme == "recursive",
            fmt::format("model.depth.scheme: '{}' has no meaning in a pyramid, whose stages differ "
                        "in width",
                        c.depth.scheme),
            "use recursive (loops = [1] plays every block once)");
    mixed_depth(c.mixed_depth, c.depth);
    if (c.stem == "convolutions") {
      require(c.image % 8 == 0 && c.widths[0] % 2 == 0,
              fmt::format("model.image: expected a multiple of 8 (and an even first width), got {}",
                          c.image),
              "three convolutions of stride 2 make the first tokens");
    } else {
      require(c.image >= c.patch,
              fmt::format("model.image: expected at least the patch {}, got {}", c.patch, c.image),
              "choose another image size or patch");
    }
    tokens_bounded(first_side(c));
    if (c.depth.scheme == "recursive") stage_groups(c);
  }

  void check(const LanguageModelConfig& c) const {
    no_groups(c.depth, "sliced attention would let tokens see the future");
    const RecursiveConfig& r = c.depth.recursive;
    const int64_t levels =
        c.depth.scheme == "recursive" ? r.blocks_of(0) * r.loops_of(0) : c.depth.levels;
    if (c.time.recurrent()) {
      require(!c.time.recurrent_layers.empty(), "model.time.recurrent_layers: expected a layer",
              "name at least one layer, counted from 1");
      for (const int64_t layer : c.time.recurrent_layers)
        in_stack(layer, levels, "recurrent_layers");
    }
    if (c.time.kind == "memorizing") in_stack(c.time.memory_layer, levels, "memory_layer");
    require(c.time.segment % c.time.window == 0 || c.time.kind == "none",
            fmt::format("model.time.segment: expected a multiple of the window {}, got {}",
                        c.time.window, c.time.segment),
            "segments are cut into whole blocks");
  }

 private:
  void in_stack(int64_t layer, int64_t levels, const char* key) const {
    require(layer <= levels,
            fmt::format("model.time.{}: expected a layer from 1 to {}, got {}", key, levels, layer),
            "the stack has no such layer");
  }

  void mixed_depth(bool mixed, const DepthConfig& depth) const {
    require(!mixed || depth.scheme == "recursive",
            fmt::format("model.mixed_depth: has no meaning with scheme '{}'", depth.scheme),
            "only recursive blocks can be played once or several times");
  }

  // Of the map of tokens that the first stage reads.
  static int64_t first_side(const PyramidConfig& c) {
    return c.stem == "convolutions" ? c.image / 8 : (c.image - c.patch) / c.stride + 1;
  }

  void stage_groups(const PyramidConfig& c) const {
    int64_t side = first_side(c);
    for (int64_t s = 0; s < c.stages(); ++s) {
      const int64_t tokens = side * side + (c.class_token ? 1 : 0);
      for (int64_t loop = 0; loop < c.depth.recursive.loops_of(s); ++loop) {
        groups_divide(
            tokens, c.depth.recursive.groups_of(s, loop),
            fmt::format("model.depth.recursive.groups, stage {}, loop {}", s + 1, loop + 1));
      }
      side = (side + 1) / 2;
    }
  }

  std::string name_;
};

template <class Config>
int64_t stages_of(const Config& /*config*/) {
  return 1;
}
int64_t stages_of(const PyramidConfig& config) { return config.stages(); }

}  // namespace

void check_model_config(const ModelConfig& config, const std::string& name) {
  const Checker checker(name);
  const auto check_lists = [&](const DepthConfig& depth) {
    checker.require(!depth.recursive.blocks.empty() && !depth.recursive.loops.empty(),
                    "model.depth.recursive: blocks and loops need at least one entry",
                    "one entry per stage");
  };
  std::visit(
      [&](const auto& network) {
        check_lists(network.depth);
        checker.levels_bounded(network.depth, stages_of(network));
        checker.check(network);
      },
      config.network);
}

}  // namespace rondo
