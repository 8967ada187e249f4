// Feature maps and attention rollout from observed activations.
#include "rondo/study/feature_maps.h"

#include <fmt/format.h>

#include <cmath>

#include "rondo/base/error.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/recurrence/stack.h"

namespace rondo::study {
namespace {

// Keeps outputs, attention and permutations of one forward pass.
class MapObserver : public Observer {
 public:
  bool wants(const std::string& name) override {
    return name.find(".level.") != std::string::npos &&
           (ends(name, ".output") || ends(name, ".mixing.probabilities") ||
            ends(name, ".mixing.permutation"));
  }
  void activation(const std::string& name, const Tensor& value) override { all_[name] = value; }
  Tensor get(const std::string& name) const {
    const auto found = all_.find(name);
    return found == all_.end() ? Tensor() : found->second;
  }

 private:
  static bool ends(const std::string& name, std::string_view end) {
    return name.size() >= end.size() &&
           name.compare(name.size() - end.size(), end.size(), end) == 0;
  }
  std::map<std::string, Tensor> all_;
};

// Tokens of a square grid [T, D] or [T], without a leading class token: [D, h, w] or [h, w].
Tensor as_map(const Tensor& tokens) {
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens.size(0))));
  const Tensor patches = tokens.slice(0, tokens.size(0) - side * side);
  if (tokens.dim() == 1) return patches.reshape({side, side});
  return patches.t().reshape({tokens.size(1), side, side});
}

std::string words_for(const std::string& label, const Stack& stack, int64_t i) {
  const Level& level = stack.plan().levels[static_cast<size_t>(i)];
  int64_t uses = 0;  // levels that apply the same block
  for (const Level& other : stack.plan().levels) uses += other.mixing == level.mixing ? 1 : 0;
  if (uses < 2) return "level " + label;
  return fmt::format("level {}: block {}, loop {}", label, level.mixing + 1, level.loop + 1);
}

LevelMaps maps_of(const Tensor& tokens, std::string label, int64_t channels) {
  LevelMaps maps;
  maps.label = std::move(label);
  const Tensor map = as_map(tokens.to(at::kDouble));  // [D, h, w]
  maps.mean = map.mean(0);
  const int64_t k = std::min(channels, map.size(0));
  const Tensor order = std::get<1>(map.abs().mean(at::IntArrayRef{1, 2}).topk(k)).contiguous();
  maps.strongest = map.index_select(0, order);
  maps.channels = {order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + k};
  return maps;
}

// For one stack and one image; undefined if a level has no attention.
Tensor rollout_of(const MapObserver& seen, const std::string& stack, int64_t levels, int64_t item,
                  int64_t rows) {
  Tensor product;
  for (int64_t i = 0; i < levels; ++i) {
    const std::string scope = fmt::format("{}.level.{}.mixing.", stack, i);
    const Tensor all = seen.get(scope + "probabilities");
    if (!all.defined()) return {};
    const int64_t groups = all.size(0) / rows;
    const Tensor a =
        whole_attention(all.narrow(0, item * groups, groups), seen.get(scope + "permutation"));
    const Tensor mixed = (a + at::eye(a.size(0), at::kDouble)) / 2.0;
    product = product.defined() ? at::matmul(mixed, product) : mixed;
  }
  return product;
}

Rollout rollout_map(const Tensor& product, std::string label) {
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(product.size(0))));
  const bool class_token = product.size(0) != side * side;
  const Tensor seen = class_token ? product[0] : product.mean(0);  // [T]
  return {std::move(label), as_map(seen)};
}

bool is_chosen(const std::vector<std::string>& levels, const std::string& label) {
  return levels.empty() || std::find(levels.begin(), levels.end(), label) != levels.end();
}

void require_levels(const std::vector<std::string>& wanted, const LevelGroup& group) {
  for (const std::string& level : wanted) {
    if (std::find(group.labels.begin(), group.labels.end(), level) != group.labels.end()) continue;
    throw Error(ExitCode::bad_input,
                fmt::format("activations: the network has no level '{}'", printable(level)),
                "choose from " + join(group.labels, ", "));
  }
}

}  // namespace

Tensor whole_attention(const Tensor& p, const Tensor& permutation) {
  const int64_t groups = p.size(0);
  const int64_t each = p.size(2);
  Tensor all = at::zeros({groups * each, groups * each}, at::kDouble);
  const Tensor mean = p.to(at::kDouble).mean(1);  // [G, n, n]
  for (int64_t g = 0; g < groups; ++g) {
    all.narrow(0, g * each, each).narrow(1, g * each, each).copy_(mean[g]);
  }
  if (!permutation.defined()) return all;
  // Position i holds token permutation[i].
  const Tensor back = permutation.argsort();
  return all.index_select(0, back).index_select(1, back);
}

std::vector<ImageActivations> image_activations(Network& network, const Batch& batch,
                                                const FeatureMapOptions& options) {
  const LevelGroup group = level_groups(network).front();
  require_levels(options.levels, group);
  MapObserver seen;
  Reader reader(network);
  const Tensor logits = reader.forward(batch, Scope(&seen)).at("logits");
  const Tensor probabilities = logits.to(at::kDouble).softmax(1);
  const auto stacks = network.stacks();
  std::vector<ImageActivations> found;
  for (int64_t b = 0; b < batch.rows; ++b) {
    ImageActivations image;
    image.image = batch.inputs.at("images")[b];
    image.predicted = std::to_string(probabilities[b].argmax().item<int64_t>());
    image.probability = probabilities[b].max().item<double>();
    for (size_t i = 0; i < group.scopes.size(); ++i) {
      if (!is_chosen(options.levels, group.labels[i])) continue;
      const auto number = std::stoll(group.scopes[i].substr(group.scopes[i].rfind('.') + 1));
      const Tensor output = seen.get(group.scopes[i] + ".output");
      image.levels.push_back(
          maps_of(output[b], words_for(group.labels[i], *stacks.at(group.stacks[i]), number),
                  options.channels));
    }
    for (const auto& [name, stack] : stacks) {
      const Tensor product = rollout_of(seen, name, stack->plan().size(), b, batch.rows);
      if (!product.defined()) continue;
      const bool staged = name.rfind("stage.", 0) == 0;
      image.rollouts.push_back(
          rollout_map(product, staged ? fmt::format("stage {}", std::stoll(name.substr(6)) + 1)
                                      : "all levels"));
    }
    found.push_back(std::move(image));
  }
  return found;
}

}  // namespace rondo::study
