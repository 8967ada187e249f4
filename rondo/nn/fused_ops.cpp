// Norms, activations and weighted sums with their gradients. Backwards they read their input again;
// besides it only two numbers per row of a norm are kept.
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

template <class Number>
Number* numbers_of(const Tensor& t) {
  return static_cast<Number*>(t.data_ptr());
}

float* floats_or_null(const Tensor& t) { return t.defined() ? t.data_ptr<float>() : nullptr; }

bool is_fp32(const Tensor& t) { return t.scalar_type() == at::kFloat; }

int64_t row_count(const Tensor& x) { return x.numel() / std::max<int64_t>(1, x.size(-1)); }

// Statistics of rows, as one tensor [2, rows].
kernels::NormStatistics statistics_in(const Tensor& t) {
  return {t.data_ptr<float>(), t.data_ptr<float>() + t.size(1)};
}

kernels::NormShape norm_shape(const Tensor& x, double epsilon, bool centred, bool summed) {
  return {row_count(x), x.size(-1), epsilon, centred, summed};
}

// y and the rows' statistics.
std::pair<Tensor, Tensor> run_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   const FusedNorm& how) {
  const kernels::NormShape shape = norm_shape(x, how.epsilon, how.centred, how.summed);
  const Tensor y = at::empty(x.sizes(), how.result);
  const Tensor kept = at::empty({2, shape.rows}, at::kFloat);
  const auto run = [&](auto* in, auto* out) {
    kernels::norm(shape, in, weight.data_ptr<float>(), floats_or_null(bias), out,
                  statistics_in(kept));
  };
  if (is_fp32(x)) {
    is_fp32(y) ? run(numbers_of<const float>(x), numbers_of<float>(y))
               : run(numbers_of<const float>(x), numbers_of<Bf16>(y));
  } else {
    is_fp32(y) ? run(numbers_of<const Bf16>(x), numbers_of<float>(y))
               : run(numbers_of<const Bf16>(x), numbers_of<Bf16>(y));
  }
  return {y, kept};
}

class NormFunction : public torch::autograd::Function<NormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias, const FusedNorm& how) {
    const auto [y, kept] = run_norm(x, weight, bias.value_or(Tensor()), how);
    context->save_for_backward({x, weight, kept});
    context->saved_data["epsilon"] = how.epsilon;
    context->saved_data["centred"] = how.centred;
    context->saved_data["summed"] = how.summed;
    context->saved_data["biased"] = bias.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor& weight = saved[1];
    const auto yes = [&](const char* what) { return context->saved_data[what].toBool(); };
    const kernels::NormShape shape =
        norm_shape(x, context->saved_data["epsilon"].toDouble(), yes("centred"), yes("summed"));
    const Tensor dy = gradients[0].contiguous();
    const Tensor dx = at::empty_like(x);
    const Tensor dw = at::empty_like(weight);
    const Tensor db = context->saved_data["biased"].toBool() ? at::empty_like(weight) : Tensor();
    const auto run = [&](auto* in, auto* out_gradient, auto* in_gradient) {
      kernels::norm_gradient(shape, in, weight.data_ptr<float>(), statistics_in(saved[2]),
                             out_gradient, in_gradient, dw.data_ptr<float>(), floats_or_null(db));
    };
    if (is_fp32(x)) {
      is_fp32(dy)
          ? run(numbers_of<const float>(x), numbers_of<const float>(dy), numbers_of<float>(dx))
          : run(numbers_of<const float>(x), numbers_of<const Bf16>(dy), numbers_of<float>(dx));
    } else {
      is_fp32(dy)
          ? run(numbers_of<const Bf16>(x), numbers_of<const float>(dy), numbers_of<Bf16>(dx))
          : run(numbers_of<const Bf16>(x), numbers_of<const Bf16>(dy), numbers_of<Bf16>(dx));
    }
    return {dx, dw, db, Tensor()};
  }
};

kernels::ActivationShape activation_shape(const Tensor& x, bool gelu) {
  return {row_count(x), x.size(-1), gelu ? kernels::Curve::gelu : kernels::Curve::relu};
}

Tensor run_activation(const Tensor& x, const Tensor& bias, bool gelu) {
  const Tensor y = at::empty_like(x);
  const auto shape = activation_shape(x, gelu);
  if (is_fp32(x)) {
    kernels::activate(shape, numbers_of<const float>(x), floats_or_null(bias),
                      numbers_of<float>(y));
  } else {
    kernels::activate(shape, numbers_of<const Bf16>(x), floats_or_null(bias), numbers_of<Bf16>(y));
  }
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
    if (is_fp32(x)) {
      kernels::activate_gradient(shape, numbers_of<const float>(x), floats_or_null(bias),
                                 numbers_of<const float>(dy), numbers_of<float>(dx),
                                 floats_or_null(db));
    } else {
      kernels::activate_gradient(shape, numbers_of<const Bf16>(x), floats_or_null(bias),
                                 numbers_of<const Bf16>(dy), numbers_of<Bf16>(dx),
                                 floats_or_null(db));
    }
    return {dx, db, Tensor()};
  }
};

template <class Number>
kernels::WeightedSum<Number> weighted_sum_of(const Tensor& x, const Tensor& a, const Tensor& y,
                                             const Tensor& b) {
  const auto number = [](const Tensor& t) { return t.defined() ? t.item<float>() : 1.0F; };
  return {x.numel(), numbers_of<const float>(x), numbers_of<const Number>(y), number(a), number(b)};
}

Tensor run_weighted_sum(const Tensor& x, const Tensor& a, const Tensor& y, const Tensor& b) {
  const Tensor out = at::empty_like(x);
  if (is_fp32(y)) {
    kernels::weighted_sum(weighted_sum_of<float>(x, a, y, b), numbers_of<float>(out));
  } else {
    kernels::weighted_sum(weighted_sum_of<Bf16>(x, a, y, b), numbers_of<float>(out));
  }
  return out;
}

class WeightedSumFunction : public torch::autograd::Function<WeightedSumFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const c10::optional<Tensor>& a,
                        const Tensor& y, const c10::optional<Tensor>& b) {
    const Tensor weights[2] = {a.value_or(Tensor()), b.value_or(Tensor())};
    context->save_for_backward({x, weights[0], y, weights[1]});
    return run_weighted_sum(x, weights[0], y, weights[1]);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto& [x, a, y, b] = std::tie(saved[0], saved[1], saved[2], saved[3]);
    const Tensor g = gradients[0].contiguous();
    const Tensor dx = at::empty_like(x);
    const Tensor dy = at::empty_like(y);
    kernels::WeightGradients sums;
    if (is_fp32(y)) {
      sums = kernels::weighted_sum_gradient(weighted_sum_of<float>(x, a, y, b),
                                            numbers_of<const float>(g), numbers_of<float>(dx),
                                            numbers_of<float>(dy));
    } else {
      sums = kernels::weighted_sum_gradient(weighted_sum_of<Bf16>(x, a, y, b),
                                            numbers_of<const float>(g), numbers_of<float>(dx),
                                            numbers_of<Bf16>(dy));
    }
    const auto if_wanted = [](const Tensor& t, double sum) {
      return t.defined() ? at::scalar_tensor(sum, t.options()) : Tensor();
    };
    return {dx, if_wanted(a, sums.a), dy, if_wanted(b, sums.b)};
  }
};

bool wants_gradient(const Tensor& t) {
  return t.defined() && t.requires_grad() && at::GradMode::is_enabled();
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
  const Tensor in = x.contiguous();
  if (!wants_gradient(x) && !wants_gradient(weight) && !wants_gradient(bias)) {
    return run_norm(in, weight, bias, how).first;  // a node of the graph would cost more than this
  }
  return NormFunction::apply(in, weight, if_defined(bias), how);
}

Tensor fused_activation(const Tensor& x, const Tensor& bias, bool gelu) {
  const Tensor in = x.contiguous();
  if (!wants_gradient(x) && !wants_gradient(bias)) return run_activation(in, bias, gelu);
  return ActivationFunction::apply(in, if_defined(bias), gelu);
}

Tensor fused_weighted_sum(const Tensor& x, const Tensor& a, const Tensor& y, const Tensor& b) {
  const Tensor left = x.contiguous();
  const Tensor right = y.contiguous();
  if (!wants_gradient(x) && !wants_gradient(a) && !wants_gradient(y) && !wants_gradient(b)) {
    return run_weighted_sum(left, a, right, b);
  }
  return WeightedSumFunction::apply(left, if_defined(a), right, if_defined(b));
}

}  // namespace rondo::nn
