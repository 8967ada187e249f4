// Counting parameters and operations.
#include "rondo/model/cost.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/recurrence/stack.h"

namespace rondo {
namespace {

const std::set<std::string>& bank_names() {
  static const std::set<std::string> names = {"mixing", "cross",    "feed_forward", "norm",
                                              "signal", "residual", "projection"};
  return names;
}

bool is_embedding_or_head(const std::string& part) {
  static const std::set<std::string> names = {"embedding",
                                              "source_embedding",
                                              "target_embedding",
                                              "patches",
                                              "class_token",
                                              "positions",
                                              "stem",
                                              "head"};
  return names.count(part) != 0;
}

// "encoder.mixing.0.projections.query.weight" and "encoder.level.3.mixing.query" →
// "encoder.mixing".
std::string part_of(const std::string& path) {
  const std::vector<std::string> pieces = split(path, '.');
  if (std::find(pieces.begin(), pieces.end(), "signal") != pieces.end()) {
    return pieces.front() + ".signal";
  }
  const bool staged = pieces.front() == "stage";
  const bool stacked = staged || pieces.front() == "stack" || pieces.front() == "encoder" ||
                       pieces.front() == "decoder";
  if (!stacked) return pieces.front();
  const std::string prefix = staged ? pieces[0] + "." + pieces[1] : pieces[0];
  for (size_t i = staged ? 2 : 1; i < pieces.size(); ++i) {
    if (bank_names().count(pieces[i]) != 0) return prefix + "." + pieces[i];
  }
  return prefix;
}

class Meter : public Observer {
 public:
  explicit Meter(std::map<std::string, CostPart>& parts) : parts_(parts) {}
  bool wants(const std::string& /*name*/) override { return false; }
  void activation(const std::string& /*name*/, const Tensor& /*value*/) override {}
  void multiply_adds(const std::string& name, double count) override {
    parts_[part_of(name)].multiply_adds += count;
  }
  void normalized(const std::string& name, double elements) override {
    parts_[part_of(name)].normalized += elements;
  }
  void gelu(const std::string& name, double elements) override {
    parts_[part_of(name)].gelu += elements;
  }
  void elementwise(const std::string& name, double elements) override {
    parts_[part_of(name)].elementwise += elements;
  }
  void low_rank(const std::string& name, const LowRankWork& w) override {
    const double thin = w.rows * w.rank * (w.in + w.out);
    parts_[part_of(name)].forming += w.in * w.rank * w.out + w.in * w.out - thin;
  }

 private:
  std::map<std::string, CostPart>& parts_;
};

// How many levels of a plan use each entry of each bank.
class TimesPlayed {
 public:
  explicit TimesPlayed(const DepthPlan& plan) {
    for (const Level& level : plan.levels) {
      count("mixing", level.mixing);
      count("cross", level.cross);
      count("feed_forward", level.feed_forward);
      count("signal", level.signal);
      count("residual", level.residual);
      count("projection", level.projection);
      for (const int64_t norm :
           std::set<int64_t>{level.mixing_norm, level.cross_norm, level.feed_forward_norm}) {
        count("norm", norm);  // a norm used by several sub-layers of a level counts once
      }
    }
  }
  int64_t of(const std::string& bank, int64_t index) const {
    const auto found = times_.find({bank, index});
    return found == times_.end() ? 0 : found->second;
  }

 private:
  void count(const char* bank, int64_t index) {
    if (index != kNone) ++times_[{bank, index}];
  }
  std::map<std::pair<std::string, int64_t>, int64_t> times_;
};

// Adds the parameters of the stacks to `shared` and `per_level`.
void count_sharing(const Network& network, std::map<std::string, CostPart>& parts, Cost& cost) {
  for (const auto& [stack_name, stack] : network.stacks()) {
    const TimesPlayed times(stack->plan());
    for (const auto& item : stack->named_parameters()) {
      const std::vector<std::string> pieces = split(item.key(), '.');
      const int64_t count = item.value().numel();
      if (times.of(pieces[0], std::stoll(pieces[1])) > 1) {
        cost.shared += count;
        parts[part_of(stack_name + "." + item.key())].shared += count;
      } else {
        cost.per_level += count;
      }
    }
  }
}

}  // namespace

CountRule count_rule(const std::string& name) {
  if (name == "macs") return CountRule::macs;
  if (name == "norms") return CountRule::norms;
  require(name == "authors", "counting rule: expected macs, norms or authors, got '{}'", name);
  return CountRule::authors;
}

double Work::by(CountRule rule) const {
  if (rule == CountRule::macs) return multiply_adds;
  if (rule == CountRule::norms) return with_norms();
  return with_norms() + 6.0 * gelu + elementwise + forming;
}

Work& Work::operator+=(const Work& other) {
  multiply_adds += other.multiply_adds;
  normalized += other.normalized;
  gelu += other.gelu;
  elementwise += other.elementwise;
  forming += other.forming;
  return *this;
}

Cost measure_cost(const ModelConfig& config, int64_t tokens) {
  const nn::ShapesOnly shapes_only;
  const at::NoGradGuard no_grad;
  const std::shared_ptr<Network> network = build_network(config);
  network->eval();
  Cost cost;
  std::map<std::string, CostPart> parts;
  for (const auto& item : network->named_parameters()) {
    const std::string part = part_of(item.key());
    const int64_t count = item.value().numel();
    parts[part].parameters += count;
    cost.parameters += count;
    if (!is_embedding_or_head(part)) cost.without_embeddings += count;
  }
  count_sharing(*network, parts, cost);
  Meter meter(parts);
  State state;
  network->forward(network->example(tokens), state, Scope(&meter));
  for (auto& [name, part] : parts) {
    part.name = name;
    cost += part;
    cost.parts.push_back(part);
  }
  return cost;
}

}  // namespace rondo
