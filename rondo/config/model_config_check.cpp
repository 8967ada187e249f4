// Consistency checks of model configurations. Single values are bounded where they are declared,
// and anything specific to a scheme or kind of time is checked by its entry (depth_scheme.h,
// time_kind.h).
#include <fmt/format.h>

#include <algorithm>

#include "rondo/config/depth_scheme.h"
#include "rondo/config/time_kind.h"

namespace rondo {
namespace {

// Attention is quadratic in tokens: this already exceeds any memory.
constexpr int64_t kMaxImageTokens = 1 << 20;

class Checker : public ConfigCheck {
 public:
  using ConfigCheck::ConfigCheck;

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
    require(!sliced, fmt::format("model.depth.recursive.groups: {}", why), "omit groups here");
  }

  void tokens_bounded(int64_t side) const {
    require(side * side <= kMaxImageTokens,
            fmt::format("model.image: expected an image of at most {} tokens, got {} x {}",
                        kMaxImageTokens, side, side),
            "choose a smaller image or larger patches");
  }

  void check(const EncoderDecoderConfig& c) const {
    heads_divide(c.width, c.heads, "model.heads");
    no_groups(c.depth, "sliced attention is not supported for sentences, whose lengths vary");
    require(c.style != "fairseq" || (c.width % 2 == 0 && c.width >= 4),
            fmt::format("model.width: fairseq positions need an even width of at least 4, got {}",
                        c.width),
            "choose an even width");
    const int64_t smaller = std::min(c.source_vocabulary, c.target_vocabulary);
    require(c.padding < smaller,
            fmt::format("model.padding: expected a token below {}, got {}", smaller, c.padding),
            "the padding token must be in both vocabularies");
    scheme_fits(c.depth, {});
  }

  void check(const VisionConfig& c) const {
    require(
        c.image % c.patch == 0,
        fmt::format("model.image: expected a multiple of the patch {}, got {}", c.patch, c.image),
        "choose another image size or patch");
    if (c.mixing == "attention") heads_divide(c.width, c.heads, "model.heads");
    const DepthScheme& scheme = depth_schemes().find(c.depth.scheme);
    require(
        c.mixing == "attention" || scheme.without_attention,
        fmt::format("model.depth.scheme: '{}' is not supported with model.mixing = feed-forward",
                    c.depth.scheme),
        "a Mixer has no attention; use vanilla or recursive");
    require(c.mixing == "attention" || c.pool == "mean",
            "model.pool: a token feed-forward mixes patches only",
            "set model.pool = \"mean\" with model.mixing = \"feed-forward\"");
    mixed_depth(c.mixed_depth, scheme);
    const int64_t side = c.image / c.patch;
    tokens_bounded(side);
    DepthUse use;
    use.tokens = {side * side + (c.pool == "class" ? 1 : 0)};
    use.adds_positions = c.positions != "none";
    scheme_fits(c.depth, use);
  }

  void check(const PyramidConfig& c) const {
    require(!c.widths.empty() && c.widths.size() == c.heads.size(),
            fmt::format("model.heads: expected one entry per stage, {} as in widths, got {}",
                        c.widths.size(), c.heads.size()),
            "widths and heads must have equal length");
    for (size_t s = 0; s < c.widths.size(); ++s) {
      heads_divide(c.widths[s], c.heads[s], "model.heads");
      require(s == 0 || c.widths[s] % c.widths[s - 1] == 0,
              fmt::format("model.widths: expected a multiple of {} in stage {}, got {}",
                          s == 0 ? 0 : c.widths[s - 1], s, c.widths[s]),
              "the convolution between stages has one group per input channel");
    }
    const DepthScheme& scheme = depth_schemes().find(c.depth.scheme);
    require(
        scheme.in_pyramid,
        fmt::format("model.depth.scheme: '{}' is not supported in a pyramid, whose stages differ "
                    "in width",
                    c.depth.scheme),
        "use recursive (loops = [1] applies every block once)");
    mixed_depth(c.mixed_depth, scheme);
    if (c.stem == "convolutions") {
      require(c.image % 8 == 0 && c.widths[0] % 2 == 0,
              fmt::format("model.image: expected a multiple of 8 (and an even first width), got {}",
                          c.image),
              "the stem has three convolutions of stride 2");
    } else {
      require(c.image >= c.patch,
              fmt::format("model.image: expected at least the patch {}, got {}", c.patch, c.image),
              "choose another image size or patch");
    }
    tokens_bounded(first_side(c));
    DepthUse use;
    int64_t side = first_side(c);
    for (int64_t s = 0; s < c.stages(); ++s) {
      use.tokens.push_back(side * side + (c.class_token ? 1 : 0));
      side = (side + 1) / 2;
    }
    scheme_fits(c.depth, use);
  }

  void check(const LanguageModelConfig& c) const {
    no_groups(c.depth, "sliced attention would let tokens see the future");
    scheme_fits(c.depth, {});
    const TimeKind& kind = time_kinds().find(c.time.kind);
    const int64_t levels = make_plan(c.depth, PlanShape{}).size();
    if (kind.check != nullptr) kind.check(c, levels, *this);
    require(!kind.by_blocks || c.time.segment % c.time.window == 0,
            fmt::format("model.time.segment: expected a multiple of the window {}, got {}",
                        c.time.window, c.time.segment),
            "segments are split into whole blocks");
  }

 private:
  void scheme_fits(const DepthConfig& depth, const DepthUse& use) const {
    // Before anything iterates over levels.
    require(
        depth.levels <= kMaxLevels,
        fmt::format("model.depth.levels: expected at most {}, got {}", kMaxLevels, depth.levels),
        "choose fewer levels");
    const DepthScheme& scheme = depth_schemes().find(depth.scheme);
    if (scheme.check != nullptr) scheme.check(depth, use, *this);
  }

  void mixed_depth(bool mixed, const DepthScheme& scheme) const {
    require(!mixed || scheme.with_mixed_depth,
            fmt::format("model.mixed_depth: is not supported with scheme '{}'", scheme.name),
            "use scheme 'recursive', whose blocks can be applied once or several times");
  }

  // Side of the token grid of the first stage.
  static int64_t first_side(const PyramidConfig& c) {
    return c.stem == "convolutions" ? c.image / 8 : (c.image - c.patch) / c.stride + 1;
  }
};

}  // namespace

void check_model_config(const ModelConfig& config, const std::string& name) {
  const Checker checker(name);
  std::visit([&](const auto& network) { checker.check(network); }, config.network);
}

}  // namespace rondo
