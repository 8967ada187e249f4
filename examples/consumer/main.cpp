// A program outside Rondo's source tree: a named model processes a text in two pieces, and the
// recipes installed with the library are found.
#include <fmt/format.h>
#include <rondo/base/error.h>
#include <rondo/config/share.h>
#include <rondo/model/cost.h>
#include <rondo/model/network.h>

int main() {
  try {
    const at::NoGradGuard no_gradients;
    const rondo::ModelConfig config =
        rondo::resolve_model("rondo/ring-brt", {"model.width=64", "model.hidden=128"}).config;
    const std::shared_ptr<rondo::Network> network = rondo::build_network(config);
    rondo::nn::initialize(*network, /*seed=*/1);
    network->eval();

    rondo::State state;
    for (int i = 0; i < 2; ++i) {
      const rondo::NamedTensors outputs = network->forward(
          {{"tokens", at::randint(100, {1, 32}, at::kLong)}}, state, rondo::Scope());
      fmt::print("logits of {} tokens\n", outputs.at("logits").size(1));
    }
    fmt::print("{} parameters\n", rondo::measure_cost(config).parameters);
    fmt::print("{} recipes\n", rondo::list_shared("recipes").size());

    rondo::resolve_model("rondo/no-such-model", {});
  } catch (const rondo::Error& error) {
    fmt::print("refused: {}\n", error.what());
  }
}
