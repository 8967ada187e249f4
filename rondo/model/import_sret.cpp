// Tensor names of SReT's code (pyramids; PiT's are the same without coefficients) and of DeiT's,
// which are timm's. Both fuse query, key and value into one weight; SReT lists every application of
// a block, so a block's weights appear once per loop.
#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/model/import.h"

namespace rondo {
namespace {

// Tensors inside a block, by our name within the stack: {"mixing", k, "projections", "query",
// "weight"}.
Source block_source(const NameParts& p, size_t at, const std::string& block) {
  const std::string leaf = p.last();
  if (p[at] == "mixing") {
    const std::string& map = p[at + 3];
    if (map == "output") return {{block + ".attn.proj." + leaf}};
    Source joint = {{block + ".attn.qkv." + leaf}};
    joint.third = map == "query" ? 0 : map == "key" ? 1 : 2;
    return joint;
  }
  if (p[at] == "feed_forward") {
    return {{block + ".mlp." + (p[at + 2] == "up" ? "fc1." : "fc2.") + leaf}};
  }
  if (p[at] == "residual") {
    // Odd coefficients scale the identity, even ones the branch; attention first.
    const auto coefficient = [&](int number) {
      return fmt::format("{}.coefficient{}.bias", block, number);
    };
    return leaf == "identity" ? Source{{coefficient(1), coefficient(3)}}
                              : Source{{coefficient(2), coefficient(4)}};
  }
  return {};
}

class PyramidLayout : public Layout {
 public:
  explicit PyramidLayout(const PyramidConfig& config) : config_(config) {
    for (int64_t s = 0; s < config.stages(); ++s) {
      plans_.push_back(make_plan(config.depth, PlanShape{}, s));
    }
  }

  Source source(const std::string& name) const override {
    const NameParts p(name);
    if (p[0] == "stem") return {{stem(p)}};
    if (name == "positions") return {{"pos_embed"}};
    if (name == "class_token") return {{"cls_token"}};
    if (p[0] == "pool") return {{fmt::format("pools.{}.conv.{}", p[1], p[2])}};
    if (p[0] == "token_pool") return {{fmt::format("pools.{}.fc.{}", p[1], p[2])}};
    if (p[0] == "norm" || p[0] == "head") return {{name}};
    if (p[0] != "stage") return {};
    const int64_t stage = p.number(1);
    const int64_t index = p.number(3);
    if (p[2] == "projection") return projection(p, stage, index);
    if (p[2] == "norm") {
      const DepthPlan& plan = plans_[static_cast<size_t>(stage)];
      const NormOwner owner = norm_owner(plan, index);
      const int64_t block_index = plan.levels[static_cast<size_t>(owner.level)].mixing;
      const int number = owner.role == NormOwner::Role::mixing ? 1 : 2;
      return {{fmt::format("{}.norm{}.{}", block(stage, block_index, 0), number, p[4])}};
    }
    return block_source(p, 2, block(stage, index, 0));
  }

  std::vector<Extra> extras() const override {
    std::vector<Extra> aliases;
    static constexpr const char* kTensors[] = {
        "norm1.weight",      "norm1.bias",        "norm2.weight",      "norm2.bias",
        "attn.qkv.weight",   "attn.qkv.bias",     "attn.proj.weight",  "attn.proj.bias",
        "mlp.fc1.weight",    "mlp.fc1.bias",      "mlp.fc2.weight",    "mlp.fc2.bias",
        "coefficient1.bias", "coefficient2.bias", "coefficient3.bias", "coefficient4.bias"};
    for (int64_t s = 0; s < config_.stages(); ++s) {
      for (int64_t k = 0; k < config_.depth.recursive.blocks_of(s); ++k) {
        for (int64_t l = 1; l < config_.depth.recursive.loops_of(s); ++l) {
          for (const char* tensor : kTensors) {
            aliases.push_back(
                {block(s, k, l) + "." + tensor, Extra::Kind::alias, block(s, k, 0) + "." + tensor});
          }
        }
      }
    }
    return aliases;
  }

 private:
  // Index in the authors' list of an application or of the projection that follows it.
  std::string place(int64_t stage, int64_t application, bool projection) const {
    const bool projects = config_.depth.recursive.projection > 0.0;
    const int64_t at = projects ? 2 * application + (projection ? 1 : 0) : application;
    return fmt::format("transformers.{}.blocks.{}", stage, at);
  }
  std::string block(int64_t stage, int64_t k, int64_t loop) const {
    return place(stage, k * config_.depth.recursive.loops_of(stage) + loop, false);
  }

  Source projection(const NameParts& p, int64_t stage, int64_t index) const {
    const std::string at = place(stage, index, true);
    const std::string leaf = p.last();
    if (p[4] == "norm") return {{at + ".norm1." + leaf}};
    if (p[4] == "residual") {
      return {{fmt::format("{}.coefficient{}.bias", at, leaf == "identity" ? 1 : 2)}};
    }
    return {{at + ".mlp." + (p[5] == "up" ? "fc1." : "fc2.") + leaf}};
  }

  static std::string stem(const NameParts& p) {
    if (p[1] == "convolution") return "patch_embed.conv." + p[2];
    const bool norm = p[1].rfind("norm", 0) == 0;
    const int64_t number = p[1].back() - '0' + 1;
    return fmt::format("patch_embed.{}{}.{}", norm ? "bn" : "conv", number, p[2]);
  }

  PyramidConfig config_;
  std::vector<DepthPlan> plans_;
};

class DeitLayout : public Layout {
 public:
  explicit DeitLayout(const VisionConfig& config) : plan_(make_plan(config.depth, PlanShape{})) {}

  Source source(const std::string& name) const override {
    const NameParts p(name);
    if (p[0] == "patches") return {{"patch_embed.proj." + p[1]}};
    if (name == "positions") return {{"pos_embed"}};
    if (name == "class_token") return {{"cls_token"}};
    if (p[0] == "norm" || p[0] == "head") return {{name}};
    if (p[0] != "stack") return {};
    if (p[1] == "norm") {
      const NormOwner owner = norm_owner(plan_, p.number(2));
      const int64_t block = plan_.levels[static_cast<size_t>(owner.level)].mixing;
      const int number = owner.role == NormOwner::Role::mixing ? 1 : 2;
      return {{fmt::format("blocks.{}.norm{}.{}", block, number, p[3])}};
    }
    if (p[1] == "mixing" || p[1] == "feed_forward") {
      return block_source(p, 1, fmt::format("blocks.{}", p.number(2)));
    }
    return {};
  }

  // Networks of these programs that differ from ours.
  std::vector<Extra> extras() const override {
    const std::string distilled = "part of a distilled network with two heads";
    const std::string late_norm = "a norm after the mean over tokens instead of before it";
    const std::string registers = "part of a network with register tokens";
    const std::string early_norm = "a norm before the first block";
    std::vector<Extra> strangers;
    const auto add = [&](const std::string& name, const std::string& what) {
      strangers.push_back({name, Extra::Kind::stranger, what});
    };
    for (const char* name : {"dist_token", "head_dist.weight", "head_dist.bias"}) {
      add(name, distilled);
    }
    for (const char* leaf : {"weight", "bias"}) {
      add(std::string("fc_norm.") + leaf, late_norm);
      add(std::string("norm_pre.") + leaf, early_norm);
    }
    add("reg_token", registers);
    for (int64_t block = 0; block < plan_.mixings(); ++block) {
      for (const char* scale : {"ls1.gamma", "ls2.gamma"}) {
        add(fmt::format("blocks.{}.{}", block, scale), "a LayerScale of a residual branch");
      }
    }
    return strangers;
  }

 private:
  DepthPlan plan_;
};

std::unique_ptr<Layout> vision_transformer_layout(const ModelConfig& config, const char* program) {
  const auto* vision = std::get_if<VisionConfig>(&config.network);
  if (vision == nullptr || vision->mixing != "attention" || vision->positions != "learned") {
    throw Error(ExitCode::bad_input,
                fmt::format("import from {}: expected kind vision with learned positions", program),
                "use the configuration of a DeiT, for example sret/deit-t");
  }
  return std::make_unique<DeitLayout>(*vision);
}

}  // namespace

std::unique_ptr<Layout> sret_layout(const ModelConfig& config) {
  const auto* pyramid = std::get_if<PyramidConfig>(&config.network);
  if (pyramid == nullptr || pyramid->depth.scheme != "recursive" ||
      pyramid->depth.recursive.order != "internal") {
    throw Error(ExitCode::bad_input, "import from sret: expected a pyramid with internal loops",
                "use the configuration of an SReT or PiT, for example sret/t");
  }
  return std::make_unique<PyramidLayout>(*pyramid);
}

std::unique_ptr<Layout> deit_layout(const ModelConfig& config) {
  return vision_transformer_layout(config, "deit");
}

// With a class token (model.pool = "class"), or without one and the mean of all tokens after the
// norm (timm's class_token=False, global_pool="avg", fc_norm=False; model.pool = "mean").
std::unique_ptr<Layout> timm_vit_layout(const ModelConfig& config) {
  return vision_transformer_layout(config, "timm-vit");
}

}  // namespace rondo
