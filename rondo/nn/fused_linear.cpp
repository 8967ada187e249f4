// Linear maps as an autograd function.
#include "rondo/nn/fused_linear.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "rondo/kernels/column_sums.h"
#include "rondo/kernels/gemm.h"
#include "rondo/kernels/outer_products.h"
#include "rondo/kernels/row_products.h"
#include "rondo/nn/gradients.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo::nn {
namespace {

using kernels::Bf16;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const Bf16* bf16_of(const Tensor& t) { return static_cast<const Bf16*>(t.data_ptr()); }

// a · op(b) → [m, n]; contiguous, of one type or b alone in bf16. `out` is added to if it is
// defined.
Tensor product(const Tensor& a, const Tensor& b, bool transpose_b, const Tensor& out = {},
               const Tensor& bias = {}) {
  kernels::Product p;
  p.transpose_b = transpose_b;
  p.m = a.size(0);
  p.k = a.size(1);
  p.n = b.size(transpose_b ? 0 : 1);
  p.beta = out.defined() ? 1.0F : 0.0F;
  if (bias.defined()) p.bias = bias.data_ptr<float>();
  Tensor c = out.defined() ? out : at::empty({p.m, p.n}, a.options().dtype(at::kFloat));
  if (p.m == 0 || p.n == 0) return c;
  if (p.k == 0) {
    if (!out.defined()) c.zero_();
    return bias.defined() ? c.add_(bias) : c;
  }
  const auto bits = [](const Tensor& t) { return static_cast<const uint16_t*>(t.data_ptr()); };
  if (a.scalar_type() == at::kBFloat16) {
    kernels::gemm(p, bits(a), bits(b), c.data_ptr<float>());
  } else {
    kernels::gemm(p, a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>());
  }
  return c;
}

Tensor rows(const Tensor& x, at::ScalarType type) {
  return x.reshape({-1, x.size(-1)}).to(type).contiguous();
}

// dW = dyᵀ x, added to `sum` if that is defined.
Tensor weight_gradient(const Tensor& dy, const Tensor& x, const Tensor& sum = {}) {
  kernels::OuterProducts p;
  p.rows = dy.size(0);
  p.n = dy.size(1);
  p.k = x.size(1);
  p.add = sum.defined();
  Tensor c = sum.defined() ? sum : at::empty({p.n, p.k}, at::kFloat);
  if (c.numel() == 0) return c;
  if (p.rows == 0) return sum.defined() ? c : c.zero_();
  if (x.scalar_type() == at::kBFloat16) {
    kernels::outer_products(p, bf16_of(dy), bf16_of(x), c.data_ptr<float>());
  } else {
    kernels::outer_products(p, dy.data_ptr<float>(), x.data_ptr<float>(), c.data_ptr<float>());
  }
  return c;
}

// Whether a weight's gradient may go by itself to where it belongs.
bool takes_gradient(const Tensor& weight) {
  return gradients_in_place() && weight.defined() && weight.scalar_type() == at::kFloat &&
         (!weight.grad().defined() || weight.grad().is_contiguous());
}

// db = Σ over rows of dy, fp32.
Tensor bias_gradient(const Tensor& dy) {
  const Tensor sums = at::empty({dy.size(1)}, at::kFloat);
  if (dy.scalar_type() == at::kBFloat16) {
    kernels::column_sums(bf16_of(dy), dy.size(0), dy.size(1), sums.data_ptr<float>());
  } else {
    kernels::column_sums(dy.data_ptr<float>(), dy.size(0), dy.size(1), sums.data_ptr<float>());
  }
  return sums;
}

// To where it belongs, if it may go there by itself; else to be handed on.
Tensor hand_on_gradient(const Tensor& weight, const Tensor& dy, const Tensor& x) {
  if (!takes_gradient(weight)) return weight_gradient(dy, x);
  const Tensor now = weight_gradient(dy, x, weight.grad());
  if (!weight.grad().defined()) weight.mutable_grad() = now;
  return {};
}

// The same for a gradient that is needed elsewhere too.
Tensor hand_on_gradient(const Tensor& weight, const Tensor& gradient) {
  if (!takes_gradient(weight)) return gradient;
  if (weight.grad().defined()) {
    weight.mutable_grad().add_(gradient);
  } else {
    weight.mutable_grad() = gradient;
  }
  return {};
}

// weight + upᵀ · down, [N, K] of the given type; the product by bf16 factors if it is bf16.
Tensor formed_matrix(const LinearMap& map, at::ScalarType type) {
  const Tensor weight = map.weight.detach().contiguous();
  if (type != at::kBFloat16 || weight.scalar_type() != at::kFloat || map.up.size(0) == 0) {
    const Tensor sum = weight.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    return weight_gradient(map.up.detach().contiguous(), map.down.detach().contiguous(), sum)
        .to(type);
  }
  const Tensor left = map.up.detach().t().to(at::kBFloat16).contiguous();  // [N, r]
  const Tensor right = map.down.detach().to(at::kBFloat16).contiguous();   // [r, K]
  const Tensor formed = at::empty(weight.sizes(), at::kBFloat16);
  const kernels::RightMatrix down(bf16_of(right), right.size(0), right.size(1),
                                  /*transposed=*/false);
  kernels::RowResults to;
  to.rounded = static_cast<Bf16*>(formed.data_ptr());
  to.addend = weight.data_ptr<float>();
  if (formed.numel() > 0) kernels::row_products({{bf16_of(left), &down}}, left.size(0), to);
  return formed;
}

// A product of rows [m, k] with a matrix.
struct Factors {
  Tensor a, b;
};

// Σ of a_i · op(b_i) (+ bias) → [m, n] of the given type, factors in bf16.
Tensor bf16_products(const std::vector<Factors>& factors, bool transpose_b, const Tensor& bias,
                     at::ScalarType type) {
  const int64_t m = factors[0].a.size(0);
  const int64_t n = factors[0].b.size(transpose_b ? 0 : 1);
  constexpr int64_t kFew = 32;  // making matrices ready for fewer rows is not worth it
  if (m < kFew) {
    Tensor sum;
    for (const Factors& f : factors) {
      sum = product(f.a, f.b, transpose_b, sum, sum.defined() ? Tensor() : bias);
    }
    return sum.to(type);
  }
  const Tensor out = at::empty({m, n}, type);
  if (out.numel() == 0) return out;
  std::vector<kernels::RightMatrix> right;
  right.reserve(factors.size());
  std::vector<kernels::RowTerm> terms;
  for (const Factors& f : factors) {
    if (f.a.size(1) == 0) continue;
    right.emplace_back(bf16_of(f.b), f.a.size(1), n, transpose_b);
    terms.push_back({bf16_of(f.a), &right.back()});
  }
  if (terms.empty()) return bias.defined() ? out.copy_(bias) : out.zero_();
  kernels::RowResults results;
  if (bias.defined()) results.bias = bias.data_ptr<float>();
  if (type == at::kBFloat16) {
    results.rounded = static_cast<Bf16*>(out.data_ptr());
  } else {
    results.exact = out.data_ptr<float>();
  }
  kernels::row_products(terms, m, results);
  return out;
}

// One map of rows `in` [M, K] → [M, N].
Tensor apply_map(const Tensor& in, const Tensor& w, const LinearMap& map, at::ScalarType result) {
  const Tensor& bias = map.bias;
  if (in.scalar_type() == at::kBFloat16) {
    return bf16_products({{in, w}}, true, bias, result);
  }
  return product(in, w, true, Tensor(), bias);
}

// Σ dy_i · w_i, [M, K].
Tensor input_gradient(const std::vector<Factors>& factors, at::ScalarType type) {
  if (factors[0].a.scalar_type() == at::kBFloat16) {
    return bf16_products(factors, false, Tensor(), type);
  }
  Tensor dx;
  for (const Factors& f : factors) dx = product(f.a, f.b, false, dx);
  return dx;
}

// What rows and weights are multiplied as, and what comes of it.
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
    out.push_back(apply_map(in, weights[i], maps[i], result).view(shape));
  }
  return out;
}

std::vector<Tensor> factor_weights(const std::vector<LinearMap>& maps, at::ScalarType type) {
  std::vector<Tensor> weights;
  for (const LinearMap& map : maps) {
    if (map.up.defined()) {
      weights.push_back(formed_matrix(map, type));
    } else {
      weights.push_back(type == at::kBFloat16 ? bf16_weight(map.weight) : rows(map.weight, type));
    }
  }
  return weights;
}

// What autograd is given besides x: the parameters that are defined. And where each of a map's four
// (weight, bias, up, down) stands among x and them, which is where its gradient goes; 0 for none.
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
    const Tensor in = rows(x, types.factor);                                 // [M, K]
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
      const Tensor dy = rows(gradients[i], in.scalar_type());  // [M, N]
      const Tensor* const kept = &saved[1 + i * 4];            // factor, weight, up, down
      to_input.push_back({dy, kept[0]});
      // Where the gradient of a map's n-th parameter goes, null if it is not wanted.
      const auto wanted = [&](size_t n) {
        const auto place = static_cast<size_t>(places[i * 4 + n]);
        return place != 0 && learns[place] != 0 ? &out[place] : nullptr;
      };
      if (kept[2].defined()) {
        differentiate_formed(dy, in, kept, wanted);
      } else if (Tensor* weight = wanted(0)) {
        *weight = hand_on_gradient(kept[1], dy, in);
      }
      if (Tensor* bias = wanted(1)) {
        *bias = bias_gradient(rows(gradients[i], gradients[i].scalar_type()));
      }
    }
    if (learns[0] != 0 && !to_input.empty()) {
      const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
      out[0] = input_gradient(to_input, type).view(context->saved_data["shape"].toIntVector());
    }
    return out;
  }

 private:
  // Gradients of weight, up and down from that of weight + upᵀ · down.
  template <class Wanted>
  static void differentiate_formed(const Tensor& dy, const Tensor& in, const Tensor* kept,
                                   const Wanted& wanted) {
    const Tensor matrix = weight_gradient(dy, in);                                       // [N, K]
    if (Tensor* up = wanted(2)) *up = product(kept[3].contiguous(), matrix, true);       // [r, N]
    if (Tensor* down = wanted(3)) *down = product(kept[2].contiguous(), matrix, false);  // [r, K]
    if (Tensor* weight = wanted(0)) *weight = hand_on_gradient(kept[1], matrix);
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
    return run_maps(x, rows(x, types.factor), factor_weights(maps, types.factor), maps,
                    types.result);
  }
  return FusedLinears::apply(x, at::TensorList(parameters.defined), parameters.places, maps, types);
}

Tensor fused_linear(const Tensor& x, const LinearMap& map, bool bf16, Result result) {
  return fused_linears(x, {map}, bf16, result)[0];
}

}  // namespace rondo::nn
