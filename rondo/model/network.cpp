// Building networks from configurations, and common helpers.
#include "rondo/model/network.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "rondo/base/require.h"
#include "rondo/model/encoder_decoder.h"
#include "rondo/model/language_model.h"
#include "rondo/model/pyramid.h"
#include "rondo/model/vision.h"
#include "rondo/nn/loss.h"

namespace rondo {
namespace {

struct Builder {
  std::shared_ptr<Network> operator()(const EncoderDecoderConfig& c) const {
    return std::make_shared<EncoderDecoder>(c);
  }
  std::shared_ptr<Network> operator()(const VisionConfig& c) const {
    return std::make_shared<Vision>(c);
  }
  std::shared_ptr<Network> operator()(const PyramidConfig& c) const {
    return std::make_shared<Pyramid>(c);
  }
  std::shared_ptr<Network> operator()(const LanguageModelConfig& c) const {
    return std::make_shared<LanguageModel>(c);
  }
};

// Flattened labels of rows [..., ·], -1 where a row is ignored, and how many are not.
struct ScoredLabels {
  Tensor labels;
  int64_t count = 0;
};

ScoredLabels scored_labels(const Tensor& rows, int64_t classes, const Tensor& labels,
                           int64_t ignored) {
  const Tensor flat = labels.reshape({-1});
  if (flat.numel() * rows.size(-1) != rows.numel()) {
    Shape expected = rows.sizes().vec();
    expected.pop_back();
    throw Error(ExitCode::bad_input,
                fmt::format("inputs: labels: expected [{}], one per row of logits, got [{}]",
                            fmt::join(expected, ", "), fmt::join(labels.sizes().vec(), ", ")));
  }
  if (flat.is_meta()) return {flat, flat.numel()};
  if (flat.numel() > 0 && flat.max().item<int64_t>() >= classes) {
    throw Error(ExitCode::bad_input, fmt::format("inputs: labels: expected values below {}, got {}",
                                                 classes, flat.max().item<int64_t>()));
  }
  const Tensor scored = flat.ge(0).logical_and(flat.ne(ignored));
  return {at::where(scored, flat, at::full_like(flat, -1)), scored.sum().item<int64_t>()};
}

}  // namespace

std::shared_ptr<Network> build_network(const ModelConfig& config) {
  check_model_config(config, "the configuration");
  return std::visit(Builder{}, config.network);
}

std::string fingerprint(const ModelConfig& config, const Network& network) {
  const std::string text = dump_model_config(config);
  uint64_t hash = XXH3_64bits(text.data(), text.size());
  for (const auto& [name, tensor] : named_tensors(network)) {
    const Tensor t = tensor.detach().to(at::kCPU).contiguous();
    hash = XXH3_64bits_withSeed(name.data(), name.size(), hash);
    hash = XXH3_64bits_withSeed(t.data_ptr(), t.nbytes(), hash);
  }
  return fmt::format("{}-{:016x}", config.kind(), hash);
}

void save_model(const std::string& path, const ModelConfig& config, const Network& network,
                const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> metadata = more;
  metadata[kModelConfigKey] = dump_model_config(config);
  save_tensors(path, named_tensors(network), metadata, Checksum::xxh3);
}

Tensor require_input(const NamedTensors& inputs, const std::string& name, at::ScalarType type,
                     int64_t rank) {
  const auto found = inputs.find(name);
  if (found == inputs.end()) {
    throw Error(
        ExitCode::bad_input, fmt::format("inputs: tensor '{}' is missing", name),
        "image models need 'images'; translation 'source' and 'target'; language models 'tokens'");
  }
  const Tensor& t = found->second;
  if (t.scalar_type() != type || (rank >= 0 && t.dim() != rank)) {
    throw Error(ExitCode::bad_input,
                fmt::format("inputs: {}: expected {} with {} dimensions, got {} with {}", name,
                            c10::toString(type), rank, c10::toString(t.scalar_type()), t.dim()));
  }
  return t;
}

Tensor require_tokens(const NamedTensors& inputs, const std::string& name, int64_t vocabulary) {
  NamedTensors widened = inputs;
  const auto found = widened.find(name);
  if (found != widened.end() && found->second.scalar_type() == at::kInt) {
    found->second = found->second.to(at::kLong);
  }
  const Tensor tokens = require_input(widened, name, at::kLong, 2);
  check_tokens(tokens, name, vocabulary);
  return tokens;
}

void check_tokens(const Tensor& tokens, const std::string& name, int64_t vocabulary) {
  require(tokens.defined() && tokens.scalar_type() == at::kLong && tokens.dim() == 2,
          "inputs: {}: expected Long with 2 dimensions", name);
  if (tokens.is_meta()) return;
  require(tokens.numel() > 0, "inputs: {}: expected 1 or more tokens, got none", name);
  const int64_t low = tokens.min().item<int64_t>();
  const int64_t high = tokens.max().item<int64_t>();
  if (low < 0 || high >= vocabulary) {
    throw Error(ExitCode::bad_input,
                fmt::format("inputs: {}: expected tokens from 0 to {}, got {}", name,
                            vocabulary - 1, low < 0 ? low : high),
                "the vocabularies of the data and the model differ");
  }
}

Tensor require_images(const NamedTensors& inputs, int64_t side) {
  const auto found = inputs.find("images");
  const bool is_double =
      found != inputs.end() && found->second.scalar_type() == at::kDouble;  // gradient checks
  const Tensor images = require_input(inputs, "images", is_double ? at::kDouble : at::kFloat, 4);
  if (images.size(1) != 3 || images.size(2) != side || images.size(3) != side) {
    throw Error(ExitCode::bad_input,
                fmt::format("inputs: images: expected [B, 3, {}, {}], got [{}]", side, side,
                            fmt::join(images.sizes().vec(), ", ")),
                "set model.image to the size of the images");
  }
  return images;
}

LossSum sum_cross_entropy(const Tensor& logits, const Tensor& labels, int64_t ignored,
                          double smoothing) {
  const int64_t classes = logits.size(-1);
  const ScoredLabels scored = scored_labels(logits, classes, labels, ignored);
  return {nn::cross_entropy_sum(logits.reshape({-1, classes}), scored.labels, smoothing),
          scored.count};
}

LossSum sum_cross_entropy(const Tensor& x, const nn::Head& head, const Tensor& labels,
                          int64_t ignored, double smoothing) {
  const ScoredLabels scored = scored_labels(x, head.map.weight.size(0), labels, ignored);
  return {nn::head_cross_entropy_sum(x.reshape({-1, x.size(-1)}), head, scored.labels, smoothing),
          scored.count};
}

Tensor mean_cross_entropy(const Tensor& logits, const Tensor& labels, int64_t ignored) {
  const LossSum loss = sum_cross_entropy(logits, labels, ignored);
  return loss.sum / static_cast<double>(std::max<int64_t>(loss.count, 1));
}

}  // namespace rondo
