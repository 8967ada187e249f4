// Observing a network: attention probabilities of every level during an ordinary forward pass of a
// RingFormer. The network is not modified, and only requested activations are kept.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "rondo/base/text.h"
#include "rondo/model/network.h"

namespace {

// Keeps the mean entropy, in bits, of every attention map whose name matches.
class EntropyWatch : public rondo::Observer {
 public:
  bool wants(const std::string& name) override {
    return rondo::glob_match("*.mixing.probabilities", name);
  }
  void activation(const std::string& name, const at::Tensor& p) override {  // [B, H, Tq, Tk]
    const at::Tensor bits = -(p * at::log2(p.clamp_min(1e-12))).sum(-1);    // [B, H, Tq]
    entropy_[name] = bits.mean().item<double>();
  }
  const std::map<std::string, double>& entropy() const { return entropy_; }

 private:
  std::map<std::string, double> entropy_;
};

}  // namespace

int main() {
  const at::NoGradGuard no_gradients;
  const rondo::ModelConfig config =
      rondo::resolve_model("ringformer/image-small", {"model.image=64", "model.width=64",
                                                      "model.hidden=128", "model.heads=4"})
          .config;
  const std::shared_ptr<rondo::Network> network = rondo::build_network(config);
  rondo::nn::initialize(*network, /*seed=*/1);
  network->eval();

  at::manual_seed(7);
  EntropyWatch watch;
  rondo::State state;
  network->forward({{"images", at::rand({2, 3, 64, 64})}}, state, rondo::Scope(&watch));

  // 64 × 64 pixels in 16 × 16 patches give 16 tokens, plus the class token.
  fmt::print("uniform attention over 17 tokens would have {:.4f} bits\n", std::log2(17.0));
  for (const auto& [name, bits] : watch.entropy()) fmt::print("{:<36} {:.4f} bits\n", name, bits);
}
