// Feature maps and attention rollout from observed activations.
#include "rondo/study/feature_maps.h"

#include <fmt/format.h>

#include <cmath>

#include "rondo/base/error.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/recurrence/stack.h"
#include "rondo/study/rollout.h"

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

// Attention of one stack on one image.
struct StackAttention {
  std::vector<Tensor> levels;  // [N, N]; empty if a level has no attention
  int64_t side = 0;            // of the grid of patches
  bool class_token = false;
};

StackAttention attention_of(const MapObserver& seen, const std::string& stack, int64_t levels,
                            int64_t item, int64_t rows) {
  StackAttention found;
  for (int64_t i = 0; i < levels; ++i) {
    const std::string scope = fmt::format("{}.level.{}.mixing.", stack, i);
    const Tensor all = seen.get(scope + "probabilities");
    if (!all.defined()) return {};
    const int64_t groups = all.size(0) / rows;
    found.levels.push_back(
        whole_attention(all.narrow(0, item * groups, groups), seen.get(scope + "permutation")));
  }
  const int64_t tokens = found.levels.front().size(0);
  found.side = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens)));
  found.class_token = tokens != found.side * found.side;
  return found;
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
  if (!stages) return found;
  const StackAttention& last = stacks.back();
  Tensor seen = rollout(last.levels, rollout_start(last.levels[0].size(0), last.class_token));
  for (size_t s = stacks.size() - 1; s-- > 0;) {
    seen = rollout(stacks[s].levels, unpool(seen, stacks[s].side, stacks[s].class_token));
  }
  found.push_back({"all stages", as_map(seen)});
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
    std::vector<StackAttention> attention;
    for (const auto& [name, stack] : stacks) {
      attention.push_back(attention_of(seen, name, stack->plan().size(), b, batch.rows));
    }
    image.rollouts = rollouts_of(attention);
    found.push_back(std::move(image));
  }
  return found;
}

}  // namespace rondo::study
