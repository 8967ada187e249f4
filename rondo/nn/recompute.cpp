// Activation checkpointing as an autograd function.
#include "rondo/nn/recompute.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>

namespace rondo::nn {
namespace {

// The states of the generators that a piece may draw from: the CPU's (permutations, seeds of
// dropout) and, if it has one, that of the device.
struct RandomState {
  explicit RandomState(at::Device of) : device(of), cpu(state_of(at::kCPU)) {
    if (device.is_cuda()) own = state_of(device);
  }
  void restore() const {
    set_state(at::kCPU, cpu);
    if (own.defined()) set_state(device, own);
  }
  static Tensor state_of(at::Device of) {
    auto generator = at::globalContext().defaultGenerator(of);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    return generator.get_state();
  }
  static void set_state(at::Device of, const Tensor& state) {
    auto generator = at::globalContext().defaultGenerator(of);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }
  at::Device device;
  Tensor cpu, own;
};

// What the backward pass needs, kept outside the graph's tensors.
struct Recipe : public torch::CustomClassHolder {
  Recipe(Piece piece, at::Device device) : again(std::move(piece)), random(device) {}
  Piece again;
  RandomState random;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& x, const Piece& first,
                        const Piece& again) {
    ctx->save_for_backward({x});
    auto recipe = c10::make_intrusive<Recipe>(again, x.device());
    ctx->saved_data["recipe"] = c10::IValue::make_capsule(std::move(recipe));
    return first(x);  // Function::apply runs this without a graph
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto recipe =
        c10::static_intrusive_pointer_cast<Recipe>(ctx->saved_data["recipe"].toCapsule());
    const Tensor x = ctx->get_saved_variables()[0].detach().requires_grad_(true);
    const RandomState now(x.device());
    recipe->random.restore();
    Tensor y;
    {
      const at::AutoGradMode with_graph(true);
      y = recipe->again(x);
    }
    now.restore();
    torch::autograd::backward({y}, {grads[0]});
    return {x.grad(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor recompute_in_backward(const Tensor& x, const Piece& first, const Piece& again) {
  return Recompute::apply(x, first, again);
}

}  // namespace rondo::nn
