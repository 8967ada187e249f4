// Norms, activations and weighted sums with gradients. The backward pass rereads the input; besides
// it, only two values per row of a norm are saved.
#include "rondo/nn/fused_ops.h"

#include <torch/csrc/autograd/custom_function.h>

#include "rondo/kernels/activation.h"
#include "rondo/kernels/norm.h"
#include "rondo/kernels/weighted_sum.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo::nn {
namespace {

using kernels::Bf16;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Bf16* bf16_of(const Tensor& t) { return static_cast<Bf16*>(t.data_ptr()); }

float* floats_or_null(const Tensor& t) { return t.defined() ? t.data_ptr<float>() : nullptr; }

// Calls work(numbers) with a typed pointer to the values of `t`.
template <class Work>
auto with_numbers(const Tensor& t, const Work& work) {
  return t.scalar_type() == at::kFloat ? work(t.data_ptr<float>()) : work(bf16_of(t));
}

int64_t row_count(const Tensor& x) { return x.numel() / std::max<int64_t>(1, x.size(-1)); }

// Row statistics as one tensor [2, rows].
kernels::NormStatistics statistics_in(const Tensor& t) {
  return {t.data_ptr<float>(), t.data_ptr<float>() + t.size(1)};
}

kernels::NormShape norm_shape(const Tensor& x, double epsilon, bool centered, bool summed) {
  return {row_count(x), x.size(-1), epsilon, centered, summed};
}

// y and the row statistics.
std::pair<Tensor, Tensor> run_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   const FusedNorm& how) {
  const kernels::NormShape shape = norm_shape(x, how.epsilon, how.centered, how.summed);
  const Tensor y = at::empty(x.sizes(), how.result);
  const Tensor kept = at::empty({2, shape.rows}, at::kFloat);
  with_numbers(y, [&](auto* out) {
    kernels::norm(shape, x.data_ptr<float>(), weight.data_ptr<float>(), floats_or_null(bias), out,
                  statistics_in(kept));
  });
  return {y, kept};
}

void keep_law(AutogradContext* context, const FusedNorm& how, bool biased) {
  context->saved_data["epsilon"] = how.epsilon;
  context->saved_data["centered"] = how.centered;
  context->saved_data["summed"] = how.summed;
  context->saved_data["biased"] = biased;
}

// What a norm saves for its gradient.
struct KeptNorm {
  Tensor x, weight, statistics;
};

struct NormGradients {
  Tensor x, weight, bias;
};

// `also` (may be undefined): the gradient of x from its other uses.
NormGradients norm_gradients(AutogradContext* context, const KeptNorm& kept, const Tensor& dy,
                             const Tensor& also) {
  const Tensor& x = kept.x;
  const auto yes = [&](const char* what) { return context->saved_data[what].toBool(); };
  const kernels::NormShape shape =
      norm_shape(x, context->saved_data["epsilon"].toDouble(), yes("centered"), yes("summed"));
  const Tensor dx = at::empty_like(x);
  const Tensor dw = at::empty_like(kept.weight);
  const Tensor db = yes("biased") ? at::empty_like(kept.weight) : Tensor();
  with_numbers(dy, [&](const auto* gradient) {
    kernels::norm_gradient(shape, x.data_ptr<float>(), kept.weight.data_ptr<float>(),
                           statistics_in(kept.statistics), gradient, dx.data_ptr<float>(),
                           dw.data_ptr<float>(), floats_or_null(db), floats_or_null(also));
  });
  return {dx, dw, db};
}

class NormFunction : public torch::autograd::Function<NormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias, const FusedNorm& how) {
    const auto [y, kept] = run_norm(x, weight, bias.value_or(Tensor()), how);
    context->save_for_backward({x, weight, kept});
    keep_law(context, how, bias.has_value());
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const NormGradients d = norm_gradients(context, {saved[0], saved[1], saved[2]},
                                           gradients[0].contiguous(), /*also=*/Tensor());
    return {d.x, d.weight, d.bias, Tensor()};
  }
};

kernels::ActivationShape activation_shape(const Tensor& x, bool gelu) {
  return {row_count(x), x.size(-1), gelu ? kernels::Curve::gelu : kernels::Curve::relu};
}

Tensor run_activation(const Tensor& x, const Tensor& bias, bool gelu) {
  const Tensor y = at::empty_like(x);
  with_numbers(x, [&](auto* in) {
    kernels::activate(activation_shape(x, gelu), in, floats_or_null(bias),
                      static_cast<decltype(in)>(y.data_ptr()));
  });
  return y;
}

class ActivationFunction : public torch::autograd::Function<ActivationFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x,
                        const c10::optional<Tensor>& bias, bool gelu) {
    variable_list kept = {x};
    if (bias.has_value()) kept.push_back(*bias);
    context->save_for_backward(kept);
    context->saved_data["gelu"] = gelu;
    return run_activation(x, bias.value_or(Tensor()), gelu);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor bias = saved.size() > 1 ? saved[1] : Tensor();
    const auto shape = activation_shape(x, context->saved_data["gelu"].toBool());
    const Tensor dy = gradients[0].to(x.scalar_type()).contiguous();
    const Tensor dx = at::empty_like(x);
    const Tensor db = bias.defined() ? at::empty_like(bias) : Tensor();
    with_numbers(x, [&](auto* in) {
      using Numbers = decltype(in);
      kernels::activate_gradient(shape, in, floats_or_null(bias),
                                 static_cast<Numbers>(dy.data_ptr()),
                                 static_cast<Numbers>(dx.data_ptr()), floats_or_null(db));
    });
    return {dx, db, Tensor()};
  }
};

kernels::WeightedSum numbers_of_sum(const WeightedSum& s) {
  const auto number = [](const Tensor& t) { return t.defined() ? t.item<float>() : 1.0F; };
  return {s.x.numel(), s.x.data_ptr<float>(), s.y.data_ptr<float>(), number(s.a), number(s.b)};
}

Tensor run_weighted_sum(const WeightedSum& in) {
  const Tensor out = at::empty_like(in.x);
  kernels::weighted_sum(numbers_of_sum(in), out.data_ptr<float>());
  return out;
}

// Gradients of x, a, y, b, given that of the sum.
variable_list sum_gradients(const WeightedSum& in, const Tensor& g) {
  const Tensor dx = at::empty_like(in.x);
  const Tensor dy = at::empty_like(in.y);
  const kernels::WeightGradients sums = kernels::weighted_sum_gradient(
      numbers_of_sum(in), g.data_ptr<float>(), dx.data_ptr<float>(), dy.data_ptr<float>());
  const auto if_wanted = [](const Tensor& t, double sum) {
    return t.defined() ? at::scalar_tensor(sum, t.options()) : Tensor();
  };
  return {dx, if_wanted(in.a, sums.a), dy, if_wanted(in.b, sums.b)};
}

class WeightedSumFunction : public torch::autograd::Function<WeightedSumFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const c10::optional<Tensor>& a,
                        const Tensor& y, const c10::optional<Tensor>& b) {
    const WeightedSum in = {x, y, a.value_or(Tensor()), b.value_or(Tensor())};
    context->save_for_backward({in.x, in.y, in.a, in.b});
    return run_weighted_sum(in);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    return sum_gradients({saved[0], saved[1], saved[2], saved[3]}, gradients[0].contiguous());
  }
};

// Sum and norm, and the row statistics.
std::pair<NormedSum, Tensor> run_norm_of_sum(const WeightedSum& in, const Tensor& weight,
                                             const Tensor& bias, const FusedNorm& how) {
  const kernels::NormShape shape = norm_shape(in.x, how.epsilon, how.centered, how.summed);
  const NormedSum out = {at::empty_like(in.x), at::empty(in.x.sizes(), how.result)};
  const Tensor kept = at::empty({2, shape.rows}, at::kFloat);
  with_numbers(out.norm, [&](auto* y) {
    kernels::norm_of_sum(shape, numbers_of_sum(in), out.sum.data_ptr<float>(),
                         weight.data_ptr<float>(), floats_or_null(bias), y, statistics_in(kept));
  });
  return {out, kept};
}

class NormOfSumFunction : public torch::autograd::Function<NormOfSumFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x,
                               const c10::optional<Tensor>& a, const Tensor& y,
                               const c10::optional<Tensor>& b, const Tensor& weight,
                               const c10::optional<Tensor>& bias, const FusedNorm& how) {
    const WeightedSum in = {x, y, a.value_or(Tensor()), b.value_or(Tensor())};
    const auto [out, kept] = run_norm_of_sum(in, weight, bias.value_or(Tensor()), how);
    const bool weighed =
        in.a.defined() || in.b.defined();  // without weights, x and y are not needed
    context->save_for_backward(
        {out.sum, weight, kept, weighed ? x : Tensor(), weighed ? y : Tensor(), in.a, in.b});
    context->set_materialize_grads(false);
    keep_law(context, how, bias.has_value());
    return {out.sum, out.norm};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto whole = [](const Tensor& t) { return t.defined() ? t.contiguous() : t; };
    NormGradients d;
    d.x = whole(gradients[0]);
    if (gradients[1].defined()) {
      d = norm_gradients(context, {saved[0], saved[1], saved[2]}, whole(gradients[1]), d.x);
    }
    if (!saved[3].defined()) return {d.x, {}, d.x, {}, d.weight, d.bias, {}};
    const variable_list of = sum_gradients({saved[3], saved[4], saved[5], saved[6]}, d.x);
    return {of[0], of[1], of[2], of[3], d.weight, d.bias, {}};
  }
};

bool wants_gradient(const Tensor& t) {
  return t.defined() && t.requires_grad() && at::GradMode::is_enabled();
}

bool sum_learns(const WeightedSum& s) {
  return wants_gradient(s.x) || wants_gradient(s.y) || wants_gradient(s.a) || wants_gradient(s.b);
}

c10::optional<Tensor> if_defined(const Tensor& t) {
  return t.defined() ? c10::optional<Tensor>(t) : c10::nullopt;
}

}  // namespace

bool kernels_take(const Tensor& x) {
  return kernels_in_use() == Kernels::fused && x.is_cpu() && x.dim() > 0 && x.numel() > 0 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

Tensor fused_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const FusedNorm& how) {
  const Tensor in = x.to(at::kFloat).contiguous();
  if (!wants_gradient(x) && !wants_gradient(weight) && !wants_gradient(bias)) {
    return run_norm(in, weight, bias, how).first;  // a graph node would cost more than this
  }
  return NormFunction::apply(in, weight, if_defined(bias), how);
}

Tensor fused_activation(const Tensor& x, const Tensor& bias, bool gelu) {
  const Tensor in = x.contiguous();
  if (!wants_gradient(x) && !wants_gradient(bias)) return run_activation(in, bias, gelu);
  return ActivationFunction::apply(in, if_defined(bias), gelu);
}

Tensor fused_weighted_sum(const WeightedSum& in) {
  const WeightedSum s = {in.x.contiguous(), in.y.contiguous(), in.a, in.b};
  if (!sum_learns(s)) return run_weighted_sum(s);
  return WeightedSumFunction::apply(s.x, if_defined(s.a), s.y, if_defined(s.b));
}

NormedSum fused_norm_of_sum(const WeightedSum& in, const Tensor& weight, const Tensor& bias,
                            const FusedNorm& how) {
  const WeightedSum s = {in.x.contiguous(), in.y.contiguous(), in.a, in.b};
  if (!sum_learns(s) && !wants_gradient(weight) && !wants_gradient(bias)) {
    return run_norm_of_sum(s, weight, bias, how).first;
  }
  const variable_list out = NormOfSumFunction::apply(s.x, if_defined(s.a), s.y, if_defined(s.b),
                                                     weight, if_defined(bias), how);
  return {out[0], out[1]};
}

}  // namespace rondo::nn
