// A feed-forward as one autograd function. M rows, D wide outside and F inside.
#include "rondo/nn/fused_feed_forward.h"

#include <torch/csrc/autograd/custom_function.h>

#include <map>
#include <mutex>

#include "rondo/kernels/activation.h"
#include "rondo/kernels/row_products.h"
#include "rondo/nn/products.h"

namespace rondo::nn {
namespace {

using kernels::Bf16;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr at::ScalarType kFactor = at::kBFloat16;

Bf16* numbers_to(const Tensor& t) { return static_cast<Bf16*>(t.data_ptr()); }

const float* bias_or_null(const Tensor& t) { return t.defined() ? t.data_ptr<float>() : nullptr; }

// How a hidden row is bent.
struct HiddenCurve {
  Tensor bias;  // [F] or undefined
  bool gelu = true;
  kernels::ActivationShape of_rows(int64_t rows, int64_t width) const {
    return {rows, width, gelu ? kernels::Curve::gelu : kernels::Curve::relu};
  }
};

// What the forward pass makes: factors of products forwards and back, and the result.
struct FeedForwardPass {
  Tensor in;      // [M, D] u
  Tensor up;      // [F, D] weights
  Tensor down;    // [D, F]
  Tensor before;  // [M, F] up · u, without its bias
  Tensor hidden;  // [M, F] act(up · u)
  Tensor result;  // [M, D]
};

FeedForwardPass run_feed_forward(const Tensor& u, const LinearMap& up, const LinearMap& down,
                                 const HiddenCurve& curve) {
  FeedForwardPass pass;
  pass.in = as_rows(u.detach(), kFactor);
  pass.up = bf16_weight(up.weight);
  pass.down = bf16_weight(down.weight);
  const int64_t rows = pass.in.size(0);
  const int64_t width = pass.up.size(0);
  pass.before = at::empty({rows, width}, kFactor);
  pass.hidden = at::empty({rows, width}, kFactor);
  const kernels::RightMatrix right(bf16_numbers(pass.up), pass.in.size(1), width,
                                   /*transposed=*/true);
  kernels::RowResults to;
  to.rounded = numbers_to(pass.before);
  kernels::row_products(
      {{bf16_numbers(pass.in), &right}}, rows, to, [&](int64_t first, int64_t last) {
        kernels::activate(curve.of_rows(last - first, width),
                          bf16_numbers(pass.before) + first * width, bias_or_null(curve.bias),
                          numbers_to(pass.hidden) + first * width);
      });
  pass.result = product_of_rows({{pass.hidden, pass.down}}, true, {at::kFloat, down.bias});
  return pass;
}

// Sums of a bias's gradient over stretches of rows, added in their order whoever made them when.
class BiasSums {
 public:
  explicit BiasSums(int64_t width) : width_(width) {}
  float* of_rows_from(int64_t first) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<float>& sums = sums_[first];
    sums.resize(static_cast<size_t>(width_));
    return sums.data();
  }
  Tensor total() const {
    const Tensor all = at::zeros({width_}, at::kFloat);
    auto* const to = all.data_ptr<float>();
    for (const auto& [first, sums] : sums_) {
      for (size_t i = 0; i < sums.size(); ++i) to[i] += sums[i];
    }
    return all;
  }

 private:
  int64_t width_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<float>> sums_;
};

// The gradients of `before` [M, F] and of the first bias, given that of the result, dy [M, D].
std::pair<Tensor, Tensor> back_to_hidden(const Tensor& dy, const Tensor& down, const Tensor& before,
                                         const HiddenCurve& curve) {
  const int64_t width = before.size(1);
  const Tensor d_before = at::empty_like(before);
  const kernels::RightMatrix right(bf16_numbers(down), down.size(0), width, /*transposed=*/false);
  BiasSums sums(width);
  kernels::RowResults to;
  to.rounded = numbers_to(d_before);
  kernels::row_products(
      {{bf16_numbers(dy), &right}}, dy.size(0), to, [&](int64_t first, int64_t last) {
        Bf16* const gradient = numbers_to(d_before) + first * width;
        kernels::activate_gradient(curve.of_rows(last - first, width),
                                   bf16_numbers(before) + first * width, bias_or_null(curve.bias),
                                   gradient, gradient,
                                   curve.bias.defined() ? sums.of_rows_from(first) : nullptr);
      });
  return {d_before, curve.bias.defined() ? sums.total() : Tensor()};
}

class FeedForwardFunction : public torch::autograd::Function<FeedForwardFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& u, const Tensor& up_weight,
                        const c10::optional<Tensor>& up_bias, const Tensor& down_weight,
                        const c10::optional<Tensor>& down_bias, bool gelu) {
    const HiddenCurve curve = {up_bias.value_or(Tensor()), gelu};
    const FeedForwardPass pass = run_feed_forward(
        u, {up_weight, Tensor()}, {down_weight, down_bias.value_or(Tensor())}, curve);
    const auto leaf = [](const Tensor& w) { return w.is_leaf() ? w : Tensor(); };  // has a grad()
    context->save_for_backward({pass.in, pass.up, pass.down, pass.before, pass.hidden,
                                leaf(up_weight), leaf(down_weight), curve.bias});
    context->saved_data["gelu"] = gelu;
    context->saved_data["shape"] = u.sizes().vec();
    context->saved_data["type"] = static_cast<int64_t>(u.scalar_type());
    const auto learns = [](const c10::optional<Tensor>& t) { return t && t->requires_grad(); };
    context->saved_data["learns"] =
        std::vector<int64_t>{u.requires_grad(), up_weight.requires_grad(), learns(up_bias),
                             down_weight.requires_grad(), learns(down_bias)};
    Shape shape = u.sizes().vec();
    shape.back() = pass.result.size(1);
    return pass.result.view(shape);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const std::vector<int64_t> learns = context->saved_data["learns"].toIntVector();
    const HiddenCurve curve = {saved[7], context->saved_data["gelu"].toBool()};
    const Tensor g = as_rows(gradients[0], gradients[0].scalar_type());  // [M, D]
    const Tensor dy = g.to(kFactor);
    const auto [d_before, d_up_bias] = back_to_hidden(dy, saved[2], saved[3], curve);
    variable_list out(6);
    if (learns[0] != 0) {
      const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
      out[0] = product_of_rows({{d_before, saved[1]}}, false, {type})
                   .view(context->saved_data["shape"].toIntVector());
    }
    if (learns[1] != 0) out[1] = hand_on_gradient(saved[5], d_before, saved[0]);
    if (learns[2] != 0) out[2] = d_up_bias;
    if (learns[3] != 0) out[3] = hand_on_gradient(saved[6], dy, saved[4]);
    if (learns[4] != 0) out[4] = sum_of_rows(g);
    return out;
  }
};

c10::optional<Tensor> if_there(const Tensor& t) {
  return t.defined() ? c10::optional<Tensor>(t) : c10::nullopt;
}

}  // namespace

Tensor fused_feed_forward(const Tensor& u, const LinearMap& up, const LinearMap& down, bool gelu) {
  bool learns = u.requires_grad();
  for (const Tensor& p : {up.weight, up.bias, down.weight, down.bias}) {
    learns = learns || (p.defined() && p.requires_grad());
  }
  if (learns && at::GradMode::is_enabled()) {
    return FeedForwardFunction::apply(u, up.weight, if_there(up.bias), down.weight,
                                      if_there(down.bias), gelu);
  }
  Shape shape = u.sizes().vec();
  shape.back() = down.weight.size(0);
  return run_feed_forward(u, up, down, {up.bias, gelu}).result.view(shape);
}

}  // namespace rondo::nn
