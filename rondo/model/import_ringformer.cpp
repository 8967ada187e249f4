// Tensor names of the RingFormer authors' code: its translation and vision models and their
// baselines. Signals are stacked over levels; 01 is the up and 02 the down part.
#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/model/import.h"

namespace rondo {
namespace {

Source named(std::string name) { return {{std::move(name)}}; }

Source level_row(std::string name, int64_t row) {
  Source s = named(std::move(name));
  s.row = row;
  return s;
}

// "query" → "Q"
const char* signal_letter(const std::string& part) {
  if (part == "query") return "Q";
  return part == "key" ? "K" : "V";
}

const char* part_suffix(const std::string& part) { return part == "up" ? "01" : "02"; }

class VisionLayout : public Layout {
 public:
  explicit VisionLayout(const VisionConfig& config)
      : scheme_(config.depth.scheme), plan_(make_plan(config.depth, PlanShape{})) {}

  Source source(const std::string& name) const override {
    const NameParts p(name);
    if (p[0] == "patches") return named("transformer.embeddings.patch_embeddings." + p[1]);
    if (name == "class_token") return named("transformer.embeddings.cls_token");
    if (p[0] == "norm") return named("transformer.encoder.encoder_norm." + p[1]);
    if (p[0] == "head") return named("head." + p[1]);
    if (p[0] != "stack") return {};
    const std::string encoder = "transformer.encoder.";
    if (p[1] == "mixing") {
      const std::string map = p[4] == "output" ? "out" : p[4];
      return named(encoder + block(p.number(2), "attn") + ".attn." + map + "." + p[5]);
    }
    if (p[1] == "feed_forward") {
      const std::string map = p[3] == "up" ? "fc1" : "fc2";
      return named(encoder + block(p.number(2), "ffn") + ".ffn." + map + "." + p[4]);
    }
    if (p[1] == "norm") return named(encoder + norm(p.number(2)) + "." + p[3]);
    if (p[1] == "signal" && p[3] == "feed_forward") {
      return level_row(fmt::format("{}lev_embed_FF_{}", encoder, part_suffix(p[4])), p.number(2));
    }
    if (p[1] == "signal") {
      return level_row(
          fmt::format("{}ATTN_lev_embed_{}_{}", encoder, signal_letter(p[3]), part_suffix(p[4])),
          p.number(2));
    }
    return {};
  }

  std::vector<Extra> extras() const override {
    return {{"transformer.embeddings.position_embeddings.pos_embed"},
            {"transformer.encoder.level_embed.level_embed"}};
  }

 private:
  std::string block(int64_t index, const char* part) const {
    if (scheme_ == "vanilla") return fmt::format("layer.{}", index);
    if (scheme_ == "one-wide") {
      return std::string(part) == "ffn" ? "ff_block" : fmt::format("attn_blocks.{}", index);
    }
    return "layers.0";
  }

  std::string norm(int64_t index) const {
    const NormOwner owner = norm_owner(plan_, index);
    const bool feed = owner.role == NormOwner::Role::feed_forward;
    if (scheme_ == "ring") {
      return fmt::format("{}_layer_norms.{}", feed ? "FF" : "ATTN", owner.level);
    }
    if (scheme_ == "vanilla") {
      return fmt::format("layer.{}.{}", owner.level, feed ? "ffn_norm" : "attention_norm");
    }
    return block(owner.level, feed ? "ffn" : "attn") + (feed ? ".ff_norm" : ".attention_norm");
  }

  std::string scheme_;
  DepthPlan plan_;
};

class TranslationLayout : public Layout {
 public:
  explicit TranslationLayout(const EncoderDecoderConfig& config) : scheme_(config.depth.scheme) {
    PlanShape shape;
    shape.one_norm_per_level = config.one_norm_per_level;
    one_norm_ = shape.one_norm_per_level || scheme_ == "one-wide";
    encoder_ = make_plan(config.depth, shape);
    shape.cross = true;
    decoder_ = make_plan(config.depth, shape);
  }

  Source source(const std::string& name) const override {
    const NameParts p(name);
    if (name == "source_embedding") return named("encoder.emb_layer.emb_layer.weight");
    if (name == "target_embedding") return named("decoder.emb_layer.emb_layer.weight");
    if (p[0] == "head") return named("fc." + p[1]);
    const bool decoder = p[0] == "decoder";
    const std::string side = p[0] + ".";
    const int64_t index = p.number(2);
    if (p[1] == "mixing" || p[1] == "cross") {
      const std::string map = p[4] == "output" ? "attn_proj" : p[4].substr(0, 1) + "_proj";
      const char* attention = p[1] == "cross" ? "enc_dec_attention"
                              : decoder       ? "masked_self_attention"
                                              : "self_attention";
      return named(
          fmt::format("{}{}.{}.{}.{}", side, layers(decoder, index), attention, map, p[5]));
    }
    if (p[1] == "feed_forward") {
      const std::string owner = scheme_ == "one-wide" ? "FFN" : layers(decoder, index);
      return named(fmt::format("{}{}.positionWiseFeedForward.{}.0.{}", side, owner,
                               p[3] == "up" ? "FFN1" : "FFN2", p[4]));
    }
    if (p[1] == "norm") return named(side + norm(decoder, index) + "." + p[3]);
    if (p[1] == "signal" && p[3] == "feed_forward") {
      return level_row(fmt::format("{}lev_param_FF_{}", side, part_suffix(p[4])), index);
    }
    if (p[1] == "signal") {
      return level_row(
          fmt::format("{}lev_param_SA_{}_{}", side, signal_letter(p[3]), part_suffix(p[4])), index);
    }
    return {};
  }

  std::vector<Extra> extras() const override {
    return {{"encoder.pos_layer.pe"},
            {"decoder.pos_layer.pe"},
            {"encoder.lev_layer.enc_le"},
            {"decoder.lev_layer.enc_le"}};
  }

 private:
  std::string layers(bool decoder, int64_t index) const {
    const bool own = scheme_ == "vanilla" || scheme_ == "one-wide";
    return fmt::format("{}.{}", decoder ? "decoders" : "encoders", own ? index : 0);
  }

  std::string norm(bool decoder, int64_t index) const {
    const NormOwner owner = norm_owner(decoder ? decoder_ : encoder_, index);
    int number = 1;
    if (owner.role == NormOwner::Role::cross) number = 2;
    if (owner.role == NormOwner::Role::feed_forward) number = decoder ? 3 : 2;
    if (scheme_ == "ring") return fmt::format("layer_norms_0{}.{}", number, owner.level);
    if (scheme_ == "one-wide" && owner.role == NormOwner::Role::feed_forward) {
      return "FFN.layer_norm";
    }
    const std::string layer = layers(decoder, owner.level);
    return one_norm_ ? layer + ".layer_norm" : fmt::format("{}.layer_norm_0{}", layer, number);
  }

  std::string scheme_;
  bool one_norm_ = false;
  DepthPlan encoder_;
  DepthPlan decoder_;
};

void refuse_unpublished(const DepthConfig& depth) {
  if (depth.scheme != "recursive" && !(depth.scheme == "ring" && depth.ring.full_rank)) return;
  throw Error(
      ExitCode::bad_input,
      "import from ringformer: the authors' code has no such model (recursive, or full-rank "
      "signals)",
      "schemes vanilla, universal, one-wide and ring with low-rank signals can be imported");
}

}  // namespace

std::unique_ptr<Layout> ringformer_layout(const ModelConfig& config) {
  if (const auto* vision = std::get_if<VisionConfig>(&config.network)) {
    refuse_unpublished(vision->depth);
    return std::make_unique<VisionLayout>(*vision);
  }
  if (const auto* translation = std::get_if<EncoderDecoderConfig>(&config.network)) {
    refuse_unpublished(translation->depth);
    return std::make_unique<TranslationLayout>(*translation);
  }
  throw Error(ExitCode::bad_input,
              fmt::format("import from ringformer: expected kind encoder-decoder or vision, got {}",
                          config.kind()),
              "use the configuration of a RingFormer model or one of its baselines");
}

}  // namespace rondo
