// Activation checkpointing as an autograd function.
#include "rondo/nn/recompute.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>

namespace rondo::nn {
namespace {

Tensor generator_state() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const Tensor& state) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// What the backward pass needs, kept outside the graph's tensors.
struct Recipe : public torch::CustomClassHolder {
  Piece again;
  Tensor random;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& x, const Piece& first,
                        const Piece& again) {
    ctx->save_for_backward({x});
    auto recipe = c10::make_intrusive<Recipe>();
    recipe->again = again;
    recipe->random = generator_state();
    ctx->saved_data["recipe"] = c10::IValue::make_capsule(std::move(recipe));
    return first(x);  // Function::apply runs this without a graph
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto recipe =
        c10::static_intrusive_pointer_cast<Recipe>(ctx->saved_data["recipe"].toCapsule());
    const Tensor x = ctx->get_saved_variables()[0].detach().requires_grad_(true);
    const Tensor now = generator_state();
    set_generator_state(recipe->random);
    Tensor y;
    {
      const at::AutoGradMode with_graph(true);
      y = recipe->again(x);
    }
    set_generator_state(now);
    torch::autograd::backward({y}, {grads[0]});
    return {x.grad(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor recompute_in_backward(const Tensor& x, const Piece& first, const Piece& again) {
  return Recompute::apply(x, first, again);
}

}  // namespace rondo::nn
