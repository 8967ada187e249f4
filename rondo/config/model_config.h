// What a user may say about a model, torch-free: one struct per kind of network, each declared once
// for reading, defaults, help and dump. A model file is TOML:
//
//   [model]
//   kind = "vision"            # encoder-decoder, vision, pyramid or language-model
//   base = "ringformer/image-small"   # optional: start from a named model and change a few keys
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
    "epsilon of the level norms; 0 = as the scheme's authors: ring (and style fairseq) 1e-5, "
    "others 1e-6";

// Translation: source and target through an encoder and a decoder.
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
  v.field("source_vocabulary", c.source_vocabulary, "source tokens", between(1, 1 << 24));
  v.field("target_vocabulary", c.target_vocabulary, "target tokens", between(1, 1 << 24));
  v.field("padding", c.padding, "token that fills up short sentences", at_least(0));
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
          "one norm serves all sub-layers of a level (the RingFormer authors' vanilla baseline)");
  v.section("depth", c.depth, "weight sharing over depth, encoder and decoder alike");
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
  v.field("positions", c.positions, "position code", one_of({"sinusoidal", "learned", "none"}));
  v.field("pool", c.pool, "the head reads a class token, or the mean of all tokens",
          one_of({"class", "mean"}));
  v.field("dropout", c.dropout, "dropout rate", between(0, 0.99));
  v.field("drop_path", c.drop_path, "stochastic depth of the last level", between(0, 0.99));
  v.field("norm_epsilon", c.norm_epsilon, kNormEpsilonHelp, between(0, 1));
  v.field("init", c.init, "initial weights", one_of({"ringformer", "deit"}));
  v.field("mixed_depth", c.mixed_depth,
          "training: a second pass applies every block once; the losses are averaged");
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
  v.field("stem", c.stem, "three strided convolutions, or one over patches",
          one_of({"convolutions", "patch"}));
  v.field("patch", c.patch, "stem patch: patch side in pixels", between(1, 4096));
  v.field("stride", c.stride, "stem patch: step in pixels", between(1, 4096));
  v.field("widths", c.widths, "width of every stage; each a multiple of the one before",
          between(1, 65536));
  v.field("heads", c.heads, "attention heads of every stage", between(1, 65536));
  v.field("hidden_ratio", c.hidden_ratio, "feed-forward width = int(width · this)",
          between(0.01, 64));
  v.field("class_token", c.class_token, "the head reads a class token instead of the mean");
  v.field("dropout", c.dropout, "dropout rate", between(0, 0.99));
  v.field("drop_path", c.drop_path, "stochastic depth of the deepest block", between(0, 0.99));
  v.field("mixed_depth", c.mixed_depth,
          "training: a second pass applies every block once; the losses are averaged");
  v.section("depth", c.depth, "weight sharing over depth: vanilla or recursive, by stage");
}

// Language modeling over endless documents. Defaults are the Block-Recurrent paper's.
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
  v.field("vocabulary", c.vocabulary, "tokens; bytes are 256 and 4 special tokens",
          between(1, 1 << 24));
  v.field("width", c.width, "model width d", between(1, 65536));
  v.field("hidden", c.hidden, "feed-forward width f", between(1, 1 << 20));
  v.field("heads", c.heads, "attention heads", between(1, 65536));
  v.field("head_width", c.head_width, "width of one head", between(1, 65536));
  v.field("dropout", c.dropout, "dropout rate", between(0, 0.99));
  v.section("depth", c.depth, "weight sharing over depth");
  v.section("time", c.time, "what a level sees of the past");
}

struct ModelConfig {
  std::variant<EncoderDecoderConfig, VisionConfig, PyramidConfig, LanguageModelConfig> network;

  const char* kind() const;  // "encoder-decoder", ...
  const char* task() const;  // "translation", "image" or "lm"
};

// Reads [model] of a document. Error{bad_input} with the place of anything that is wrong, including
// combinations that have no meaning.
ModelConfig read_model_config(const ConfigTable& table);
// A TOML document that reads back to the same model.
std::string dump_model_config(const ModelConfig& config);
// Every key of a kind of network, for the manual.
std::vector<FieldHelp> model_config_help(const std::string& kind);

// Error{bad_input} if parts of the configuration contradict each other; `name` says whose.
void check_model_config(const ModelConfig& config, const std::string& name);

// Where a model file (safetensors) keeps its configuration.
constexpr const char* kModelConfigKey = "rondo.config";

// What a user means by a model on the command line.
struct ResolvedModel {
  std::string name;  // as given
  ModelConfig config;
  std::string weights;  // path of a model file; empty when only the configuration is known
};
// `given` is a name of the zoo, a TOML file, a model file or checkpoint, a run folder or an
// exported one; `assignments` are --set arguments.
ResolvedModel resolve_model(const std::string& given, const std::vector<std::string>& assignments);

// What `rondo info` may change from the command line; 0 = leave.
struct SizeOverrides {
  int64_t image = 0;
  int64_t classes = 0;
  int64_t vocabulary = 0;
};
void apply_sizes(ModelConfig& config, const SizeOverrides& sizes);

// Side of the images, and number of classes, of an image network.
int64_t image_side(const ModelConfig& config);
int64_t image_classes(const ModelConfig& config);

}  // namespace rondo
