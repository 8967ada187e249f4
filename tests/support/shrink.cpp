// Shrinking models and generating inputs for them.
#include "tests/support/shrink.h"

#include <algorithm>

#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

constexpr double kMoved = 0.05;  // how far weights are moved from their initial values

// The largest number of heads up to `heads` that divides `width`.
int64_t fitting_heads(int64_t width, int64_t heads) {
  heads = std::min(width, heads);
  while (width % heads != 0) --heads;
  return heads;
}

void shrink_network(EncoderDecoderConfig& c) {
  c.source_vocabulary = 37;
  c.target_vocabulary = 41;
  c.width = 16;
  c.hidden = 24;
  c.heads = fitting_heads(c.width, std::min<int64_t>(c.heads, 4));
}

void shrink_network(VisionConfig& c) {
  const bool very_deep = c.depth.scheme == "recursive" && c.depth.recursive.loops_of(0) > 10;
  c.patch = 4;
  c.image = very_deep ? 8 : 16;
  c.classes = 7;
  c.heads = std::min<int64_t>(c.heads, 4);
  c.width = 4 * c.heads;
  c.hidden = 20;
  c.token_hidden = 10;
}

void shrink_network(PyramidConfig& c) {
  // Sides 8, 4, 2 (or 7, 4, 2 over patches): divisible by every group table of the zoo.
  c.image = c.stem == "convolutions" ? 64 : 32;
  c.patch = 8;
  c.stride = 4;
  c.classes = 7;
  int64_t before = c.widths[0];
  c.widths[0] = 12;
  for (size_t s = 1; s < c.widths.size(); ++s) {
    const int64_t ratio = c.widths[s] / before;
    before = c.widths[s];
    c.widths[s] = c.widths[s - 1] * ratio;
  }
  for (size_t s = 0; s < c.widths.size(); ++s) c.heads[s] = fitting_heads(c.widths[s], c.heads[s]);
}

void shrink_network(LanguageModelConfig& c) {
  c.vocabulary = 40;
  c.width = 16;
  c.hidden = 24;
  c.heads = 2;
  c.head_width = 6;
  const int64_t blocks = std::min<int64_t>(3, c.time.segment / c.time.window);
  c.time.window = c.time.window <= 512 ? 4 : 6;
  c.time.segment = blocks * c.time.window;
  c.time.states = 3;
  c.time.memory_size = 10;
  c.time.neighbors = 3;
}

Tensor random_tokens(const Shape& shape, int64_t vocabulary, uint64_t seed) {
  return at::randint(0, vocabulary, shape, nn::counter_generator(seed, "tokens"), at::kLong);
}

NamedTensors inputs_for(const EncoderDecoderConfig& c, int64_t rows, uint64_t seed,
                        int64_t length) {
  // No padding, except at the end of the first row.
  const auto sentences = [&](int64_t vocabulary, int64_t tokens, uint64_t number) {
    const Tensor t = random_tokens({rows, tokens}, vocabulary - 1, number);
    const Tensor words = t + t.ge(c.padding).to(at::kLong);
    words[0].narrow(0, tokens - 2, 2).fill_(c.padding);
    return words;
  };
  return {{"source", sentences(c.source_vocabulary, 6, seed)},
          {"target", sentences(c.target_vocabulary, length, seed + 1)}};
}

NamedTensors inputs_for(const LanguageModelConfig& c, int64_t rows, uint64_t seed, int64_t length) {
  return {{"tokens", random_tokens({rows, length}, c.vocabulary, seed)}};
}

template <class ImageConfig>
NamedTensors inputs_for(const ImageConfig& c, int64_t rows, uint64_t seed, int64_t /*length*/) {
  return {{"images", noise({rows, 3, c.image, c.image}, seed, at::kFloat)}};
}

}  // namespace

ModelConfig shrink(ModelConfig config) {
  std::visit([](auto& c) { shrink_network(c); }, config.network);
  check_model_config(config, "shrunk model");
  return config;
}

NamedTensors tiny_inputs(const ModelConfig& config, int64_t rows, uint64_t seed, int64_t length) {
  return std::visit([&](const auto& c) { return inputs_for(c, rows, seed, length); },
                    config.network);
}

TinyModel::TinyModel(ModelConfig shrunk, uint64_t seed)
    : config(std::move(shrunk)), network(build_network(config)) {
  nn::initialize(*network, seed);
  unsettle(*network, seed + 1, kMoved);
  network->eval();
}

Tensor TinyModel::logits(const NamedTensors& inputs) const {
  State state;
  return network->forward(inputs, state, Scope()).at("logits");
}

std::vector<std::string> zoo_names(const std::string& task) {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo()) {
    if (task.empty() || entry.config().task() == task) names.push_back(entry.name);
  }
  return names;
}

std::string test_name(std::string model) {
  std::replace_if(
      model.begin(), model.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return model;
}

}  // namespace rondo::test
