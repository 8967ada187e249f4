// Model configuration, torch-free: one struct per kind of network, each declared once for parsing,
// defaults, help and dumping. A model file is TOML:
//
//   [model]
//   kind = "vision"            # encoder-decoder, vision, pyramid or language-model
//   base = "ringformer/image-small"   # optional: start from a named model
//   width = 256
//   [model.depth]
//   scheme = "ring"
#pragma once

#include <map>
#include <variant>

#include "rondo/config/depth_config.h"
#include "rondo/config/time_config.h"

namespace rondo {

constexpr const char* kNormEpsilonHelp =
    "epsilon of the level norms; 0 = the scheme authors' value: ring (and style fairseq) 1e-5, "
    "others 1e-6";

// Translation with an encoder and a decoder.
struct EncoderDecoderConfig {
  int64_t source_vocabulary = 52000;
  int64_t target_vocabulary = 52000;
  int64_t padding = 0;
  int64_t width = 512;
  int64_t hidden = 2048;
  int64_t heads = 8;
  double dropout = 0.1;
  std::string style = "ringformer";
  double norm_epsilon = 0.0;
  bool one_norm_per_level = false;
  DepthConfig depth;
};

template <class V>
void describe(V& v, EncoderDecoderConfig& c) {
  v.field("source_vocabulary", c.source_vocabulary, "source vocabulary size", between(1, 1 << 24));
  v.field("target_vocabulary", c.target_vocabulary, "target vocabulary size", between(1, 1 << 24));
  v.field("padding", c.padding, "id of the padding token", at_least(0));
  v.field("width", c.width, "model width d", between(1, 65536));
  v.field("hidden", c.hidden, "feed-forward width f", between(1, 1 << 20));
  v.field("heads", c.heads, "attention heads; must divide width", between(1, 65536));
  v.field("dropout", c.dropout, "dropout rate", between(0, 0.99));
  v.field("style", c.style,
          "ringformer: no biases, gelu, separate head; fairseq: biases, relu, scaled embeddings, "
          "head tied to the target embedding",
          one_of({"ringformer", "fairseq"}));
  v.field("norm_epsilon", c.norm_epsilon, kNormEpsilonHelp, between(0, 1));
  v.field("one_norm_per_level", c.one_norm_per_level,
          "all sub-layers of a level share one norm (the RingFormer authors' vanilla baseline)");
  v.section("depth", c.depth, "weight sharing over depth, for both encoder and decoder");
}

// Image classification on a flat sequence of patches.
struct VisionConfig {
  int64_t image = 224;
  int64_t patch = 16;
  int64_t classes = 1000;
  int64_t width = 512;
  int64_t hidden = 2048;
  int64_t heads = 8;
  std::string mixing = "attention";
  int64_t token_hidden = 384;
  std::string positions = "sinusoidal";
  std::string pool = "class";
  double dropout = 0.1;
  double drop_path = 0.0;
  double norm_epsilon = 0.0;
  std::string init = "ringformer";
  bool mixed_depth = false;
  DepthConfig depth;
};

template <class V>
void describe(V& v, VisionConfig& c) {
  v.field("image", c.image, "image side in pixels; a multiple of patch", between(1, 65536));
  v.field("patch", c.patch, "patch side in pixels", between(1, 4096));
  v.field("classes", c.classes, "number of classes", between(1, 1 << 24));
  v.field("width", c.width, "model width d", between(1, 65536));
  v.field("hidden", c.hidden, "feed-forward width f", between(1, 1 << 20));
  v.field("heads", c.heads, "attention heads; must divide width", between(1, 65536));
  v.field("mixing", c.mixing, "how tokens mix: attention, or a feed-forward over tokens (Mixer)",
          one_of({"attention", "feed-forward"}));
  v.field("token_hidden", c.token_hidden, "Mixer: hidden width of the token feed-forward",
          between(1, 1 << 20));
  v.field("positions", c.positions, "position encoding", one_of({"sinusoidal", "learned", "none"}));
  v.field("pool", c.pool, "input of the head: a class token, or the mean of all tokens",
          one_of({"class", "mean"}));
  v.field("dropout", c.dropout, "dropout rate", between(0, 0.99));
  v.field("drop_path", c.drop_path, "stochastic depth rate of the last level", between(0, 0.99));
  v.field("norm_epsilon", c.norm_epsilon, kNormEpsilonHelp, between(0, 1));
  v.field("init", c.init, "initial weights", one_of({"ringformer", "deit"}));
  v.field("mixed_depth", c.mixed_depth,
          "training: a second forward pass applies every block once; the losses are averaged");
  v.section("depth", c.depth, "weight sharing over depth");
}

// Image classification in stages of shrinking resolution and growing width.
struct PyramidConfig {
  int64_t image = 224;
  int64_t classes = 1000;
  std::string stem = "convolutions";
  int64_t patch = 16;
  int64_t stride = 8;
  std::vector<int64_t> widths = {64, 128, 256};
  std::vector<int64_t> heads = {2, 4, 8};
  double hidden_ratio = 4.0;
  bool class_token = false;
  double dropout = 0.0;
  double drop_path = 0.1;
  bool mixed_depth = false;
  DepthConfig depth;

  int64_t stages() const { return static_cast<int64_t>(widths.size()); }
};

template <class V>
void describe(V& v, PyramidConfig& c) {
  v.field("image", c.image, "image side in pixels", between(1, 65536));
  v.field("classes", c.classes, "number of classes", between(1, 1 << 24));
  v.field("stem", c.stem, "three strided convolutions, or one patch convolution",
          one_of({"convolutions", "patch"}));
  v.field("patch", c.patch, "stem patch: patch side in pixels", between(1, 4096));
  v.field("stride", c.stride, "stem patch: stride in pixels", between(1, 4096));
  v.field("widths", c.widths, "width of each stage; each a multiple of the previous one",
          between(1, 65536));
  v.field("heads", c.heads, "attention heads of each stage", between(1, 65536));
  v.field("hidden_ratio", c.hidden_ratio, "feed-forward width = int(width · hidden_ratio)",
          between(0.01, 64));
  v.field("class_token", c.class_token,
          "use a class token as the input of the head, instead of the mean");
  v.field("dropout", c.dropout, "dropout rate", between(0, 0.99));
  v.field("drop_path", c.drop_path, "stochastic depth rate of the deepest block", between(0, 0.99));
  v.field("mixed_depth", c.mixed_depth,
          "training: a second forward pass applies every block once; the losses are averaged");
  v.section("depth", c.depth, "weight sharing over depth: vanilla or recursive, by stage");
}

// Language modeling over documents of unbounded length. Defaults follow the Block-Recurrent paper.
struct LanguageModelConfig {
  LanguageModelConfig() { depth.levels = 12; }

  int64_t vocabulary = 260;
  int64_t width = 1024;
  int64_t hidden = 4096;
  int64_t heads = 8;
  int64_t head_width = 128;
  double dropout = 0.05;
  DepthConfig depth;
  TimeConfig time;
};

template <class V>
void describe(V& v, LanguageModelConfig& c) {
  v.field("vocabulary", c.vocabulary, "vocabulary size; byte models use 256 + 4 special tokens",
          between(1, 1 << 24));
  v.field("width", c.width, "model width d", between(1, 65536));
  v.field("hidden", c.hidden, "feed-forward width f", between(1, 1 << 20));
  v.field("heads", c.heads, "attention heads", between(1, 65536));
  v.field("head_width", c.head_width, "width of one head", between(1, 65536));
  v.field("dropout", c.dropout, "dropout rate", between(0, 0.99));
  v.section("depth", c.depth, "weight sharing over depth");
  v.section("time", c.time, "how a level sees the past");
}

struct ModelConfig {
  std::variant<EncoderDecoderConfig, VisionConfig, PyramidConfig, LanguageModelConfig> network;

  const char* kind() const;  // "encoder-decoder", ...
  const char* task() const;  // "translation", "image" or "lm"
};

// Reads [model] of a document. Throws Error{bad_input} with the location of any error, including
// invalid combinations.
ModelConfig read_model_config(const ConfigTable& table);
// A TOML document that round-trips.
std::string dump_model_config(const ModelConfig& config);
// Every key of a kind of network, for the manual.
std::vector<FieldHelp> model_config_help(const std::string& kind);

// Throws Error{bad_input} if the configuration is inconsistent; `name` identifies it in messages.
void check_model_config(const ModelConfig& config, const std::string& name);

// Metadata key of the configuration in a model file (safetensors).
constexpr const char* kModelConfigKey = "rondo.config";

// A model given on the command line.
struct ResolvedModel {
  std::string name;  // as given
  ModelConfig config;
  std::string weights;  // path of a model file; empty if only the configuration is known
};
// `given` is a zoo name, a TOML file, a model file or checkpoint, a run folder or an exported
// folder; `assignments` are --set arguments.
ResolvedModel resolve_model(const std::string& given, const std::vector<std::string>& assignments);

// Sizes that `rondo info` can override; 0 = keep.
struct SizeOverrides {
  int64_t image = 0;
  int64_t classes = 0;
  int64_t vocabulary = 0;
};
void apply_sizes(ModelConfig& config, const SizeOverrides& sizes);

// Image side and number of classes of an image network.
int64_t image_side(const ModelConfig& config);
int64_t image_classes(const ModelConfig& config);

}  // namespace rondo
