// Head and loss. Gradients are computed in the forward pass, piece by piece while the logits exist;
// the backward pass only multiplies them by the incoming gradient.
#include "rondo/nn/head_loss.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "rondo/kernels/cross_entropy.h"
#include "rondo/kernels/gemm.h"
#include "rondo/kernels/matmul.h"
#include "rondo/kernels/thresholds.h"
#include "rondo/kernels/weight_gradient.h"
#include "rondo/nn/loss.h"
#include "rondo/nn/ops.h"
#include "rondo/nn/products.h"

namespace rondo::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kPieceLogits = int64_t{1} << 22;  // 16 MiB in fp32

// Few rows per piece would read and write the gradient of a large weight too often.
int64_t rows_of_piece(int64_t rows, int64_t classes) {
  return std::min(rows, std::clamp<int64_t>(kPieceLogits / classes, 256, 2048));
}

// Operands of a pass over all rows.
struct HeadRows {
  Tensor x;       // [N, D], bf16 or fp32
  Tensor weight;  // [V, D], of the same type
  Tensor bias;    // [V] fp32 or undefined
  Tensor labels;  // [N]
  double scale = 1.0;
  double smoothing = 0.0;
};

struct HeadGradients {
  Tensor x, weight, bias;  // fp32; undefined where not needed
  bool wanted() const { return x.defined() || weight.defined() || bias.defined(); }
};

// c [m, n] = alpha · a · op(b) + beta · c.
void multiply(const Tensor& a, const Tensor& b, bool transpose_b, double alpha, double beta,
              const Tensor& c) {
  kernels::Product p;
  p.transpose_b = transpose_b;
  p.m = c.size(0);
  p.n = c.size(1);
  p.k = a.size(1);
  p.alpha = static_cast<float>(alpha);
  p.beta = static_cast<float>(beta);
  if (a.scalar_type() == at::kBFloat16) {
    kernels::gemm(p, static_cast<const uint16_t*>(a.data_ptr()),
                  static_cast<const uint16_t*>(b.data_ptr()), c.data_ptr<float>());
  } else {
    kernels::gemm(p, a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>());
  }
}

// One head over all rows, piece by piece.
class HeadPass {
 public:
  HeadPass(const HeadRows& in, const HeadGradients& to)
      : in_(in),
        to_(to),
        piece_(rows_of_piece(in.x.size(0), in.weight.size(0))),
        logits_(at::empty({piece_, in.weight.size(0)}, at::kFloat)),
        losses_(static_cast<size_t>(piece_)),
        sums_(static_cast<size_t>(2 * piece_)) {
    const int64_t classes = in.weight.size(0);
    const int64_t width = in.weight.size(1);
    const bool bf16 = in.x.scalar_type() == at::kBFloat16;
    if (bf16) forwards_.emplace(bf16_numbers(in.weight), width, classes, /*transposed=*/true);
    if (!to.wanted()) return;
    if (bf16 && kernels::tile_products_work() && to.x.defined() &&
        classes * width <= kernels::kNearWeight) {
      backwards_.emplace(bf16_numbers(in.weight), classes, width, /*transposed=*/false);
    }
    changes_ = bf16 ? at::empty({piece_, classes}, at::kBFloat16) : logits_;
  }

  double run() {
    double loss = 0.0;
    for (int64_t first = 0; first < in_.x.size(0); first += piece_) {
      const int64_t count = std::min(piece_, in_.x.size(0) - first);
      logits_and_losses(first, count);
      for (int64_t i = 0; i < count; ++i) loss += losses_[static_cast<size_t>(i)];
      if (changes_.defined()) add_gradients(first, count);
    }
    return loss;
  }

 private:
  // For rows [first, first + count).
  void logits_and_losses(int64_t first, int64_t count) {
    const Tensor x = in_.x.narrow(0, first, count);
    const Tensor logits = logits_.narrow(0, 0, count);
    if (!forwards_.has_value()) {
      if (in_.bias.defined()) logits.copy_(in_.bias);
      multiply(x, in_.weight, true, in_.scale, in_.bias.defined() ? 1.0 : 0.0, logits);
      return judge(first, 0, count);
    }
    kernels::RowResults to;
    to.exact = logits.data_ptr<float>();
    if (in_.bias.defined()) to.bias = in_.bias.data_ptr<float>();
    to.scale = static_cast<float>(in_.scale);
    kernels::matmul({{bf16_numbers(x), &*forwards_}}, count, to,
                    [&](int64_t from, int64_t end) { judge(first, from, end); });
  }

  // Losses of rows [from, end) of the piece that begins at `first`, and the gradients of their
  // logits.
  void judge(int64_t first, int64_t from, int64_t end) {
    const int64_t classes = in_.weight.size(0);
    const kernels::LabeledRows rows = {logits_.data_ptr<float>() + from * classes,
                                       in_.labels.data_ptr<int64_t>() + first + from, end - from,
                                       classes, in_.smoothing};
    const kernels::SoftmaxRows softmax = {sums_.data() + from, sums_.data() + piece_ + from};
    kernels::cross_entropy(rows, softmax, losses_.data() + from);
    if (!changes_.defined()) return;
    if (changes_.scalar_type() == at::kFloat) {
      kernels::cross_entropy_gradient(rows, softmax, 1.0,
                                      changes_.data_ptr<float>() + from * classes);
    } else {
      kernels::cross_entropy_gradient(
          rows, softmax, 1.0, static_cast<kernels::Bf16*>(changes_.data_ptr()) + from * classes);
    }
  }

  void add_gradients(int64_t first, int64_t count) {
    const Tensor changes = changes_.narrow(0, 0, count);  // [count, V]
    if (backwards_.has_value()) {
      kernels::RowResults to;
      to.exact = to_.x.data_ptr<float>() + first * in_.weight.size(1);
      to.scale = static_cast<float>(in_.scale);
      kernels::matmul({{bf16_numbers(changes), &*backwards_}}, count, to);
    } else if (to_.x.defined()) {
      multiply(changes, in_.weight, false, in_.scale, 0.0, to_.x.narrow(0, first, count));
    }
    if (to_.weight.defined()) {
      add_weight_gradient(changes, in_.x.narrow(0, first, count), first > 0);
    }
    if (to_.bias.defined()) Tensor(to_.bias).add_(changes.sum(0, /*keepdim=*/false, at::kFloat));
  }

  // Adds to the weight gradient, or overwrites it without `add`.
  void add_weight_gradient(const Tensor& changes, const Tensor& x, bool add) {
    kernels::WeightGradientShape p;
    p.rows = changes.size(0);
    p.n = changes.size(1);
    p.k = x.size(1);
    p.scale = static_cast<float>(in_.scale);
    p.add = add;
    float* const to = to_.weight.data_ptr<float>();
    if (x.scalar_type() == at::kBFloat16) {
      kernels::weight_gradient(p, bf16_numbers(changes), bf16_numbers(x), to);
    } else {
      kernels::weight_gradient(p, changes.data_ptr<float>(), x.data_ptr<float>(), to);
    }
  }

  const HeadRows& in_;
  const HeadGradients& to_;
  int64_t piece_;
  Tensor logits_;   // [piece, V]
  Tensor changes_;  // their gradient, in the factors' type; undefined if not needed
  std::vector<double> losses_;
  std::vector<float> sums_;
  std::optional<kernels::RightMatrix> forwards_, backwards_;  // of bf16
};

class HeadLoss : public torch::autograd::Function<HeadLoss> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias, const HeadRows& in) {
    HeadGradients to;
    if (x.requires_grad()) to.x = at::empty(in.x.sizes(), at::kFloat);
    if (weight.requires_grad()) to.weight = at::empty(in.weight.sizes(), at::kFloat);
    if (bias.has_value() && bias->requires_grad()) to.bias = at::zeros_like(in.bias);
    const double loss = HeadPass(in, to).run();
    context->save_for_backward({to.x, to.weight, to.bias});
    return at::scalar_tensor(loss, at::kFloat);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list out = context->get_saved_variables();
    const double factor = gradients[0].item<double>();
    if (factor != 1.0) {
      for (Tensor& g : out) {
        if (g.defined()) g = g * factor;  // not in place: a graph may be retained
      }
    }
    out.resize(4);
    return out;
  }
};

}  // namespace

Tensor head_cross_entropy_sum(const Tensor& x, const Head& head, const Tensor& labels,
                              double smoothing) {
  const LinearMap& map = head.map;
  if (!linear_is_fused(x, map.weight) || x.numel() == 0) {
    const Tensor logits = linear(x, map.weight, Tensor(), Scope()) * head.scale;
    return cross_entropy_sum(map.bias.defined() ? logits + map.bias : logits, labels, smoothing);
  }
  const bool bf16 = runs_in_bf16(Operation::linear, x.scalar_type());
  HeadRows in;
  in.x = x.detach().to(bf16 ? at::kBFloat16 : at::kFloat).contiguous();
  in.weight = bf16 ? bf16_weight(map.weight) : map.weight.detach().contiguous();
  if (map.bias.defined()) in.bias = map.bias.detach();
  in.labels = labels.contiguous();
  in.scale = head.scale;
  in.smoothing = smoothing;
  const bool learns =
      at::GradMode::is_enabled() && (x.requires_grad() || map.weight.requires_grad() ||
                                     (map.bias.defined() && map.bias.requires_grad()));
  const HeadGradients none;
  if (!learns) return at::scalar_tensor(HeadPass(in, none).run(), at::kFloat);
  return HeadLoss::apply(x, map.weight,
                         map.bias.defined() ? c10::optional<Tensor>(map.bias) : c10::nullopt, in);
}

}  // namespace rondo::nn
