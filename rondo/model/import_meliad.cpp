// Tensor names of meliad, the Block-Recurrent Transformer authors' code. Dense kernels are
// [in, out].
#include <fmt/format.h>

#include <map>

#include "rondo/base/error.h"
#include "rondo/model/import.h"

namespace rondo {
namespace {

Source plain(const std::string& name) { return {{name}}; }

Source kernel(const std::string& name) {
  Source s = {{name + "/kernel"}};
  s.transpose = true;
  return s;
}

// A gate under `mlp`: gate_bias, or input_gate and forget_gate.
Source gate(const NameParts& p, size_t at, const std::string& mlp) {
  if (p[at] == "bias") return plain(mlp + "/gate_bias");
  const std::string name = fmt::format("{}/{}_gate", mlp, p[at]);
  return p[at + 1] == "weight" ? kernel(name) : plain(name + "/bias");
}

const char* projection_layer(const std::string& map) {
  if (map == "query") return "queries_layer";
  return map == "key" ? "keys_layer" : "values_layer";
}

// `base`: `tbase` for tokens, `recurrent_tbase` for states.
Source base_projection(const std::string& base, const std::string& map) {
  if (map == "output") return kernel(base + "/post_attn_mlp/output_layer");
  return kernel(fmt::format("{}/_kvq/{}", base, projection_layer(map)));
}

// Tensors of our `cell`.
Source cell(const NameParts& p, size_t at, const std::string& base) {
  const std::string& part = p[at];
  if (part == "projections") return base_projection(base, p[at + 1]);
  if (part == "token_query") return kernel(base + "/_kvq/queries2_layer");
  if (part == "identity") return plain(base + "/_kvq/position_embeddings");
  if (part == "norm") return plain(base + "/_kvq/pre_attn_layernorm/scale");
  if (part == "scale") return plain(base + "/_kvq/attention_scale");
  if (part == "token_scale") return plain(base + "/attention_scale2");
  if (part == "feed_forward_norm") return plain(base + "/pre_ffn_layernorm/scale");
  if (part == "up") return kernel(base + "/ffn/hidden0");
  if (part == "down") return kernel(base + "/ffn/output_layer");
  if (part == "attention_gate") return gate(p, at + 1, base + "/post_attn_mlp");
  if (part == "feed_forward_gate") return gate(p, at + 1, base + "/ffn");
  return {};
}

class MeliadLayout : public Layout {
 public:
  explicit MeliadLayout(const LanguageModelConfig& config)
      : plan_(make_plan(config.depth, PlanShape{})) {}

  Source source(const std::string& name) const override {
    const NameParts p(name);
    if (name == "embedding") return plain("decoder/embed/embedding");
    if (p[0] == "norm") return plain("decoder/final_layernorm/scale");
    if (p[1] == "norm") {
      const NormOwner owner = norm_owner(plan_, p.number(2));
      const char* norm =
          owner.role == NormOwner::Role::mixing ? "_kvq/pre_attn_layernorm" : "pre_ffn_layernorm";
      return plain(fmt::format("{}/tbase/{}/scale", layer(owner.level), norm));
    }
    const std::string at = layer(p.number(2));
    if (p[1] == "feed_forward") {
      return kernel(at + "/tbase/ffn/" + (p[3] == "up" ? "hidden0" : "output_layer"));
    }
    if (p[1] == "mixing") return mixing(p, at);
    return {};
  }

 private:
  static std::string layer(int64_t index) { return fmt::format("decoder/transformer{}", index); }

  static Source mixing(const NameParts& p, const std::string& at) {
    const std::string& part = p[3];
    if (part == "projections") return base_projection(at + "/tbase", p[4]);
    if (part == "state_query") return kernel(at + "/tbase/_kvq/queries2_layer");
    if (part == "scale") return plain(at + "/tbase/_kvq/attention_scale");
    if (part == "state_scale") return plain(at + "/tbase/attention_scale2");
    if (part == "relative") return plain(at + "/relative_positions/rel_embedding");
    if (part == "initial") return plain(at + "/recurrent_initial_state");
    if (part == "gate") return plain(at + "/external_memory_bias");
    if (part == "cell") return cell(p, 4, at + "/recurrent_tbase");
    return {};
  }

  DepthPlan plan_;
};

}  // namespace

std::unique_ptr<Layout> meliad_layout(const ModelConfig& config) {
  const auto* lm = std::get_if<LanguageModelConfig>(&config.network);
  if (lm == nullptr || lm->depth.scheme != "vanilla") {
    throw Error(ExitCode::bad_input,
                "import from meliad: expected a language model without weight sharing over depth",
                "use the configuration of a Block-Recurrent Transformer, for example "
                "brt/rec-fixed-skip");
  }
  return std::make_unique<MeliadLayout>(*lm);
}

}  // namespace rondo
