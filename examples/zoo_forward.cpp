// First steps with the library: a small version of a named model, random weights from a seed, one
// forward pass. Four ways of sharing weights over depth differ only in the name.
#include <fmt/format.h>

#include "rondo/model/cost.h"
#include "rondo/model/network.h"

namespace {

// The configuration of `rondo info NAME --set ...` and `rondo forward NAME --set ...`.
rondo::ModelConfig small(const std::string& name) {
  return rondo::resolve_model(name, {"model.image=64", "model.classes=10", "model.width=64",
                                     "model.hidden=128", "model.heads=4"})
      .config;
}

}  // namespace

int main() {
  const at::NoGradGuard no_gradients;
  at::manual_seed(7);
  const rondo::NamedTensors inputs = {{"images", at::rand({2, 3, 64, 64})}};

  fmt::print("{:<28}{:>12}{:>16}   logits\n", "model", "parameters", "multiply-adds");
  for (const std::string name : {"ringformer/image-small-vit", "ringformer/image-small-owf",
                                 "ringformer/image-small-uit", "ringformer/image-small"}) {
    const rondo::ModelConfig config = small(name);
    const std::shared_ptr<rondo::Network> network = rondo::build_network(config);
    rondo::nn::initialize(*network, /*seed=*/1);
    network->eval();

    rondo::State state;  // carried between calls of language models; unused for images
    const rondo::NamedTensors outputs = network->forward(inputs, state, rondo::Scope());
    const at::Tensor& logits = outputs.at("logits");

    const rondo::Cost cost = rondo::measure_cost(config);
    fmt::print("{:<28}{:>12}{:>16.0f}   [{}, {}]\n", name, cost.parameters, cost.multiply_adds,
               logits.size(0), logits.size(1));
  }
}
