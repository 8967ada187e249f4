// State is a value: a block-recurrent language model processes the same text whole, token by token,
// and in pieces with the state saved to and loaded from a file in between, as if by another
// process.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "rondo/model/language_model.h"

namespace {

using rondo::State;

// Logits [1, T, V] of `tokens` [1, T], processed in pieces of `length`; `between` may replace the
// state.
template <class Between>
at::Tensor read_in_pieces(rondo::Network& network, const at::Tensor& tokens, int64_t length,
                          const Between& between) {
  State state;  // empty: a new document
  std::vector<at::Tensor> logits;
  for (const at::Tensor& piece : tokens.split(length, /*dim=*/1)) {
    logits.push_back(network.forward({{"tokens", piece}}, state, rondo::Scope()).at("logits"));
    state = between(state);
  }
  return at::cat(logits, 1);
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace

int main() {
  const at::NoGradGuard no_gradients;
  const rondo::ModelConfig config =
      rondo::resolve_model(
          "brt/rec-fixed-skip",
          {"model.width=32", "model.hidden=64", "model.heads=2", "model.head_width=16",
           "model.depth.levels=4", "model.time.window=8", "model.time.segment=16",
           "model.time.states=4", "model.time.recurrent_layers=[2]"})
          .config;
  const std::shared_ptr<rondo::Network> network = rondo::build_network(config);
  rondo::nn::initialize(*network, /*seed=*/1);
  network->eval();
  at::manual_seed(7);
  const at::Tensor tokens = at::randint(0, 256, {1, 50}, at::kLong);

  int64_t bytes = 0;
  const auto same = [&](const State& state) {
    bytes = std::max(bytes, state.bytes());
    return state;
  };
  const at::Tensor whole = read_in_pieces(*network, tokens, 50, same);
  const at::Tensor single = read_in_pieces(*network, tokens, 1, same);

  // A state file names the model it belongs to; other models reject it.
  const std::string name = rondo::fingerprint(config, *network);
  const std::string file = std::filesystem::temp_directory_path() / "rondo_example.state";
  const at::Tensor filed = read_in_pieces(*network, tokens, 7, [&](const State& state) {
    state.save(file, name);
    return dynamic_cast<rondo::LanguageModel&>(*network).load_state(file, name, /*rows=*/1);
  });
  std::remove(file.c_str());

  fmt::print("50 tokens, window 8, 4 recurrent states; the state takes at most {} bytes\n", bytes);
  fmt::print("token by token:                 largest logit difference {:.1e}\n",
             largest_difference(whole, single));
  fmt::print("pieces of 7, state in a file:   largest logit difference {:.1e}\n",
             largest_difference(whole, filed));
}
