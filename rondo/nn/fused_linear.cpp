// Linear maps as an autograd function.
#include "rondo/nn/fused_linear.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/products.h"

namespace rondo::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// weight + upᵀ · down, [N, K] of the given type; multiplied in bf16 if that is bf16.
Tensor formed_matrix(const LinearMap& map, at::ScalarType type) {
  const Tensor weight = map.weight.detach().contiguous();
  const Tensor up = map.up.detach();      // [r, N]
  const Tensor down = map.down.detach();  // [r, K]
  if (type == at::kBFloat16 && weight.scalar_type() == at::kFloat) {
    const Tensor left = up.t().to(type).contiguous();
    return product_of_rows({{left, down.to(type).contiguous()}}, false, {type, Tensor(), weight});
  }
  const Tensor sum = weight.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  return weight_gradient(up.contiguous(), down.contiguous(), sum).to(type);
}

// Types of factors and results.
struct LinearTypes {
  at::ScalarType factor = at::kFloat;
  at::ScalarType result = at::kFloat;
};

std::vector<Tensor> run_maps(const Tensor& x, const Tensor& in, const std::vector<Tensor>& weights,
                             const std::vector<LinearMap>& maps, at::ScalarType result) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < maps.size(); ++i) {
    Shape shape = x.sizes().vec();
    shape.back() = weights[i].size(0);
    const ProductResult wanted = {result, maps[i].bias};
    out.push_back(product_of_rows({{in, weights[i]}}, true, wanted).view(shape));
  }
  return out;
}

std::vector<Tensor> factor_weights(const std::vector<LinearMap>& maps, at::ScalarType type) {
  std::vector<Tensor> weights;
  for (const LinearMap& map : maps) {
    if (map.up.defined()) {
      weights.push_back(formed_matrix(map, type));
    } else {
      weights.push_back(type == at::kBFloat16 ? bf16_weight(map.weight)
                                              : as_rows(map.weight, type));
    }
  }
  return weights;
}

// The defined parameters, which autograd receives besides x, and the index of each map's four
// (weight, bias, up, down) among x and them, where its gradient goes; 0 for none.
struct MapParameters {
  explicit MapParameters(const std::vector<LinearMap>& maps) {
    for (const LinearMap& map : maps) {
      for (const Tensor& p : {map.weight, map.bias, map.up, map.down}) {
        if (p.defined()) defined.push_back(p);
        places.push_back(p.defined() ? static_cast<int64_t>(defined.size()) : 0);
      }
    }
  }
  bool learn() const {
    return std::any_of(defined.begin(), defined.end(),
                       [](const Tensor& p) { return p.requires_grad(); });
  }
  std::vector<Tensor> defined;
  std::vector<int64_t> places;  // [maps · 4]
};

class FusedLinears : public torch::autograd::Function<FusedLinears> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x, at::TensorList parameters,
                               const std::vector<int64_t>& places,
                               const std::vector<LinearMap>& maps, const LinearTypes& types) {
    const Tensor in = as_rows(x, types.factor);                              // [M, K]
    const std::vector<Tensor> weights = factor_weights(maps, types.factor);  // [N, K]
    variable_list kept = {in};
    for (size_t i = 0; i < maps.size(); ++i) {
      const Tensor own = maps[i].weight.is_leaf() ? maps[i].weight : Tensor();  // has a grad()
      kept.insert(kept.end(), {weights[i], own, maps[i].up, maps[i].down});
    }
    context->save_for_backward(kept);
    context->set_materialize_grads(false);
    std::vector<int64_t> learns = {x.requires_grad() ? 1 : 0};
    for (const Tensor& p : parameters) learns.push_back(p.requires_grad() ? 1 : 0);
    context->saved_data["places"] = places;
    context->saved_data["learns"] = learns;
    context->saved_data["shape"] = x.sizes().vec();
    context->saved_data["type"] = static_cast<int64_t>(x.scalar_type());
    return run_maps(x, in, weights, maps, types.result);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& in = saved[0];
    const std::vector<int64_t> learns = context->saved_data["learns"].toIntVector();
    const std::vector<int64_t> places = context->saved_data["places"].toIntVector();
    variable_list out(learns.size() + 3);  // of x and parameters; places, maps, types have none
    std::vector<Factors> to_input;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const Tensor dy = as_rows(gradients[i], in.scalar_type());  // [M, N]
      const Tensor* const kept = &saved[1 + i * 4];               // factor, weight, up, down
      to_input.push_back({dy, kept[0]});
      // Where the gradient of a map's n-th parameter goes; null if not needed.
      const auto wanted = [&](size_t n) {
        const auto place = static_cast<size_t>(places[i * 4 + n]);
        return place != 0 && learns[place] != 0 ? &out[place] : nullptr;
      };
      if (kept[2].defined()) {
        differentiate_formed(dy, in, kept, wanted);
      } else if (Tensor* weight = wanted(0)) {
        *weight = accumulate_gradient(kept[1], dy, in);
      }
      if (Tensor* bias = wanted(1)) {
        *bias = sum_of_rows(as_rows(gradients[i], gradients[i].scalar_type()));
      }
    }
    if (learns[0] != 0 && !to_input.empty()) {
      const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
      out[0] = product_of_rows(to_input, false, {type});  // Σ dy_i · w_i, [M, K]
      out[0] = out[0].view(context->saved_data["shape"].toIntVector());
    }
    return out;
  }

 private:
  // Gradients of weight, up and down from that of weight + upᵀ · down.
  template <class Wanted>
  static void differentiate_formed(const Tensor& dy, const Tensor& in, const Tensor* kept,
                                   const Wanted& wanted) {
    const at::ScalarType type = in.scalar_type();
    const Tensor matrix = weight_gradient(dy, in);  // [N, K]
    const Tensor factor = matrix.to(type);
    if (Tensor* up = wanted(2)) {
      *up = product_of_rows({{factor, kept[3].to(type).contiguous()}}, true).t();  // [r, N]
    }
    if (Tensor* down = wanted(3)) {
      *down = weight_gradient(kept[2].t().to(type).contiguous(), factor);  // [r, K]
    }
    if (Tensor* weight = wanted(0)) *weight = accumulate_gradient(kept[1], matrix);
  }
};

bool is_plain(const Tensor& t) {
  return t.device().is_cpu() && (t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16);
}

}  // namespace

bool linear_is_fused(const Tensor& x, const Tensor& weight) {
  return kernels_in_use() == Kernels::fused && is_plain(x) && is_plain(weight) && weight.dim() == 2;
}

std::vector<Tensor> fused_linears(const Tensor& x, const std::vector<LinearMap>& maps, bool bf16,
                                  Result result) {
  LinearTypes types;
  if (bf16) types.factor = at::kBFloat16;
  if (bf16 && result == Result::branch && branches_in_bf16()) types.result = at::kBFloat16;
  const MapParameters parameters(maps);
  if ((!x.requires_grad() && !parameters.learn()) || !at::GradMode::is_enabled()) {
    return run_maps(x, as_rows(x, types.factor), factor_weights(maps, types.factor), maps,
                    types.result);
  }
  return FusedLinears::apply(x, at::TensorList(parameters.defined), parameters.places, maps, types);
}

Tensor fused_linear(const Tensor& x, const LinearMap& map, bool bf16, Result result) {
  return fused_linears(x, {map}, bf16, result)[0];
}

}  // namespace rondo::nn
