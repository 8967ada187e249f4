// Feature maps and attention rollout from observed activations.
#include "rondo/study/feature_maps.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/recurrence/stack.h"
#include "rondo/study/rollout.h"

namespace rondo::study {
namespace {

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

// Of every stack, and of a pyramid from its last stage down to the first; `stacks` in order of
// depth.
std::vector<Rollout> rollouts_of(const std::vector<StackAttention>& stacks) {
  std::vector<Rollout> found;
  const bool stages = stacks.size() > 1;
  for (size_t s = 0; s < stacks.size(); ++s) {
    if (stacks[s].levels.empty()) return {};
    const Tensor start = rollout_start(stacks[s].levels[0].size(0), stacks[s].class_token);
    found.push_back({stages ? fmt::format("stage {}", s + 1) : "all levels",
                     as_map(rollout(stacks[s].levels, start))});
  }
  if (stages) {
    const size_t last = stacks.size() - 1;
    found.push_back({"all stages", rollout_until(stacks, last, stacks[last].levels.size() - 1)});
  }
  return found;
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

std::vector<ImageActivations> image_activations(Network& network, const Batch& batch,
                                                const FeatureMapOptions& options) {
  const LevelGroup group = level_groups(network).front();
  require_levels(options.levels, group);
  std::vector<std::string> endings = attention_endings();
  endings.emplace_back(".output");
  LevelActivations seen(std::move(endings));
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
    image.rollouts = rollouts_of(attention_of(seen, network, b, batch.rows));
    found.push_back(std::move(image));
  }
  return found;
}

}  // namespace rondo::study
