// Connects tensors to the attention kernels.
#include "rondo/nn/attend_fused.h"

#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "rondo/base/error.h"
#include "rondo/kernels/attention.h"
#include "rondo/nn/precision.h"

namespace rondo::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

int kernel_threads() { return at::in_parallel_region() ? 1 : at::get_num_threads(); }

Tensor with_contiguous_rows(const Tensor& x) {
  return x.size(-1) == 1 || x.stride(-1) == 1 ? x : x.contiguous();
}

kernels::Strides strides_of(const Tensor& x) { return {x.stride(0), x.stride(1), x.stride(2)}; }
kernels::Source source_of(const Tensor& x) { return {x.data_ptr(), strides_of(x)}; }
kernels::Sink sink_of(const Tensor& x) { return {x.data_ptr(), strides_of(x)}; }

// Everything but q, k and v: fp32 and contiguous where the kernels need it.
struct ScoreRules {
  Tensor factor;  // [H]
  Tensor addend;  // [H, Tq, Tk]; may be undefined
  Tensor mask;    // [B or 1, 1, Tq or 1, Tk]; may be undefined
  double dropout = 0.0;
  int64_t seed = 0;
};

kernels::AttentionProblem problem_of(const Tensor& q, const Tensor& k, const Tensor& v,
                                     const ScoreRules& rules) {
  kernels::AttentionProblem p;
  p.element = q.scalar_type() == at::kFloat ? kernels::Element::fp32 : kernels::Element::bf16;
  p.batch = q.size(0);
  p.heads = q.size(1);
  p.queries = q.size(2);
  p.keys = k.size(2);
  p.width = q.size(3);
  p.q = source_of(q);
  p.k = source_of(k);
  p.v = source_of(v);
  p.factor = rules.factor.data_ptr<float>();
  if (rules.addend.defined()) p.bias = rules.addend.data_ptr<float>();
  if (rules.mask.defined()) {
    p.mask = reinterpret_cast<const uint8_t*>(rules.mask.data_ptr<bool>());
    p.mask_batch = rules.mask.size(0) == 1 ? 0 : rules.mask.stride(0);
    p.mask_row = rules.mask.size(2) == 1 ? 0 : rules.mask.stride(2);
  }
  p.dropout = rules.dropout;
  p.seed = static_cast<uint64_t>(rules.seed);
  return p;
}

// The output, and each query's log Σ exp if needed.
std::pair<Tensor, Tensor> forward_fused(const Tensor& q, const Tensor& k, const Tensor& v,
                                        const ScoreRules& rules, bool keep_lse) {
  const int64_t heads = q.size(1);
  const int64_t queries = q.size(2);
  const int64_t width = q.size(3);
  const Tensor out = at::empty_strided(  // [B, H, Tq, d], lying as [B, Tq, H, d]
      q.sizes(), {queries * heads * width, width, heads * width, 1}, q.options());
  const kernels::AttentionProblem problem = problem_of(q, k, v, rules);
  Tensor lse;
  if (keep_lse) lse = at::empty({q.size(0), heads, queries}, q.options().dtype(at::kFloat));
  kernels::attention_forward(problem, sink_of(out), keep_lse ? lse.data_ptr<float>() : nullptr,
                             kernel_threads());
  return {out, lse};
}

class FusedAttention : public torch::autograd::Function<FusedAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& factor, const c10::optional<Tensor>& addend,
                        const c10::optional<Tensor>& mask, double dropout, int64_t seed) {
    ScoreRules rules;
    rules.factor = factor;
    rules.addend = addend.value_or(Tensor());
    rules.mask = mask.value_or(Tensor());
    rules.dropout = dropout;
    rules.seed = seed;
    const auto [out, lse] = forward_fused(q, k, v, rules, /*keep_lse=*/true);
    context->save_for_backward({q, k, v, factor, rules.addend, rules.mask, out, lse});
    context->saved_data["dropout"] = dropout;
    context->saved_data["seed"] = seed;
    context->saved_data["learns factor"] = factor.requires_grad();
    context->saved_data["learns addend"] = rules.addend.defined() && rules.addend.requires_grad();
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    RONDO_ASSERT(!at::GradMode::is_enabled());  // no second derivatives
    const variable_list saved = context->get_saved_variables();
    const Tensor& q = saved[0];
    const Tensor& k = saved[1];
    const Tensor& v = saved[2];
    ScoreRules rules;
    rules.factor = saved[3];
    rules.addend = saved[4];
    rules.mask = saved[5];
    rules.dropout = context->saved_data["dropout"].toDouble();
    rules.seed = context->saved_data["seed"].toInt();
    const Tensor gradient = with_contiguous_rows(gradients[0]);
    const Tensor dq = at::empty_like(q);
    const Tensor dk = at::empty_like(k);
    const Tensor dv = at::empty_like(v);
    Tensor d_factor;
    Tensor d_addend;
    kernels::AttentionResult result;
    result.out = source_of(saved[6]);
    result.gradient = source_of(gradient);
    result.lse = saved[7].data_ptr<float>();
    kernels::AttentionGradients to;
    to.q = sink_of(dq);
    to.k = sink_of(dk);
    to.v = sink_of(dv);
    if (context->saved_data["learns factor"].toBool()) {
      d_factor = at::empty_like(rules.factor);
      to.factor = d_factor.data_ptr<float>();
    }
    if (context->saved_data["learns addend"].toBool()) {
      d_addend = at::empty_like(rules.addend);
      to.bias = d_addend.data_ptr<float>();
    }
    kernels::attention_backward(problem_of(q, k, v, rules), result, to, kernel_threads());
    return {dq, dk, dv, d_factor, d_addend, Tensor(), Tensor(), Tensor()};
  }
};

// As [B or 1, 1, Tq or 1, Tk] with contiguous keys.
Tensor mask_for_kernels(const Tensor& given, int64_t keys) {
  Tensor mask = given;
  while (mask.dim() < 4) mask = mask.unsqueeze(0);
  if (mask.size(3) != keys) mask = mask.expand({-1, -1, -1, keys});
  return mask.size(3) == 1 || mask.stride(3) == 1 ? mask : mask.contiguous();
}

ScoreRules rules_of(const AttendOptions& options, int64_t heads, int64_t queries, int64_t keys,
                    bool training) {
  ScoreRules rules;
  Tensor scale;  // [H]
  if (options.scale.defined()) scale = options.scale.to(at::kFloat);
  if (!scale.defined()) {
    rules.factor = at::full({heads}, options.factor, at::kFloat);  // [H]
  } else {
    rules.factor = options.factor == 1.0 ? scale : scale * options.factor;
  }
  Tensor addend = options.scaled_bias.defined() ? options.scaled_bias : options.bias;
  if (addend.defined()) {
    addend = addend.to(at::kFloat);
    if (options.bias.defined() && scale.defined()) addend = addend * scale.view({-1, 1, 1});
    rules.addend = addend.expand({heads, queries, keys}).contiguous();
  }
  if (options.mask.defined()) rules.mask = mask_for_kernels(options.mask, keys);
  if (training && options.dropout > 0.0) {
    rules.dropout = options.dropout;
    // Drawn as in nn::dropout(): both implementations must drop the same positions.
    rules.seed = at::randint(std::numeric_limits<int64_t>::max(), {1}, at::kLong).item<int64_t>();
  }
  return rules;
}

}  // namespace

bool fused_attention_fits(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttendOptions& options) {
  const auto usable = [](const Tensor& x) {
    const bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
    return x.is_cpu() && known && x.dim() == 4 && x.numel() > 0;
  };
  if (!usable(q) || !usable(k) || !usable(v) || k.sizes() != v.sizes()) return false;
  for (const int64_t same : {0, 1, 3}) {
    if (q.size(same) != k.size(same)) return false;
  }
  const Tensor& mask = options.mask;
  return !mask.defined() || mask.dim() < 3 || mask.size(-3) == 1;
}

Tensor attend_fused(const Tensor& q, const Tensor& k, const Tensor& v, const AttendOptions& options,
                    bool training) {
  Tensor inputs[3] = {q, k, v};
  for (Tensor& x : inputs) x = with_contiguous_rows(as_wanted(Operation::matmul, x));
  auto& [queries, keys, values] = inputs;
  if (keys.scalar_type() != queries.scalar_type() || values.scalar_type() != keys.scalar_type()) {
    for (Tensor& x : inputs) x = x.to(at::kFloat);
  }
  const ScoreRules rules = rules_of(options, q.size(1), q.size(2), k.size(2), training);
  const bool learns = queries.requires_grad() || keys.requires_grad() || values.requires_grad() ||
                      rules.factor.requires_grad() ||
                      (rules.addend.defined() && rules.addend.requires_grad());
  if (!at::GradMode::is_enabled() || !learns) {
    return forward_fused(queries, keys, values, rules, /*keep_lse=*/false).first;
  }
  const auto maybe = [](const Tensor& x) {
    return x.defined() ? c10::optional<Tensor>(x) : c10::nullopt;
  };
  return FusedAttention::apply(queries, keys, values, rules.factor, maybe(rules.addend),
                               maybe(rules.mask), rules.dropout, rules.seed);
}

}  // namespace rondo::nn
