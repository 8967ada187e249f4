// rondo forward: named tensors in, named tensors out.
#include <fmt/format.h>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/model/language_model.h"
#include "rondo/model/recent_tokens.h"

namespace rondo::cli {
namespace {

// Keeps the activations whose names match one of the patterns.
class Capture : public Observer {
 public:
  explicit Capture(const std::vector<std::string>& patterns) : patterns_(patterns) {}
  bool wants(const std::string& name) override {
    seen_.push_back(name);
    for (const std::string& pattern : patterns_) {
      if (glob_match(pattern, name)) return true;
    }
    return false;
  }
  void activation(const std::string& name, const Tensor& value) override {
    kept_["probe." + name] = value.detach().clone();
  }
  const NamedTensors& kept() const { return kept_; }

  void require_matches() const {
    for (const std::string& pattern : patterns_) {
      bool matched = false;
      for (const std::string& name : seen_) matched = matched || glob_match(pattern, name);
      if (matched) continue;
      std::string advice = did_you_mean(pattern, seen_);
      if (advice.empty() && !seen_.empty()) advice = "for example --probe '" + seen_.front() + "'";
      throw Error(ExitCode::usage, fmt::format("--probe '{}' matches no activation", pattern),
                  advice);
    }
  }

 private:
  std::vector<std::string> patterns_;
  std::vector<std::string> seen_;
  NamedTensors kept_;
};

std::shared_ptr<Network> network_for(const ForwardOptions& options, const ResolvedModel& model) {
  std::shared_ptr<Network> network = build_network(model.config);
  const std::string weights = options.weights.empty() ? model.weights : options.weights;
  if (weights.empty()) {
    nn::initialize(*network, options.seed);
  } else {
    load_weights(*network, SafetensorsFile::open(weights), verify_as(options.load));
  }
  network->train(options.train);
  return network;
}

void add_training_outputs(const ForwardOptions& options, const Network& network, const Tensor& loss,
                          NamedTensors& outputs) {
  if (loss.requires_grad()) {
    loss.backward();
    for (const auto& item : network.named_parameters()) {
      const Tensor grad = item.value().grad();
      outputs["gradient." + item.key()] = grad.defined() ? grad : at::zeros_like(item.value());
    }
  }
  if (!options.train) return;
  for (const auto& item : network.named_buffers()) outputs["buffer." + item.key()] = item.value();
}

}  // namespace

void run_forward(const ForwardOptions& options) {
  start_engine(options.compute);
  const ResolvedModel model = resolve_model(options.model, options.set);
  const std::shared_ptr<Network> network = network_for(options, model);
  const NamedTensors inputs = load_tensors(options.input);
  at::manual_seed(options.seed);

  const bool has_state = std::string(model.config.task()) == "lm";
  const bool uses_state = !options.state_in.empty() || !options.state_out.empty();
  if (uses_state && !has_state) {
    throw Error(ExitCode::usage,
                fmt::format("{}: only language models carry a state between calls", options.model),
                "omit --state-in and --state-out");
  }
  // The fingerprint reads all weights, so it is computed only if a state file is involved.
  const std::string name = uses_state ? fingerprint(model.config, *network) : "";
  State state;
  if (!options.state_in.empty()) {
    state = dynamic_cast<const LanguageModel&>(*network)
                .load_state(options.state_in, name, /*rows=*/0, verify_as(options.load))
                .without("logits")
                .without(RecentTokens::kName);
  }

  const bool labeled = inputs.count("labels") != 0;
  const at::AutoGradMode with_graph(labeled && (options.train || options.gradients));
  Capture capture(options.probes);
  NamedTensors outputs =
      network->forward(inputs, state, options.probes.empty() ? Scope() : Scope(&capture));
  capture.require_matches();
  if (labeled) {
    const Tensor loss = network->loss(inputs, outputs);
    outputs["loss"] = loss;
    add_training_outputs(options, *network, loss, outputs);
  }
  for (const auto& [key, tensor] : capture.kept()) outputs[key] = tensor;
  for (const auto& [key, tensor] : state.tensors()) outputs["state." + key] = tensor;
  save_tensors(options.output, outputs);
  if (!options.state_out.empty()) state.save(options.state_out, name);
}

}  // namespace rondo::cli
