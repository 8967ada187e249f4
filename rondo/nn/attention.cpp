// Multi-head attention: projections, scores, softmax, values.
#include "rondo/nn/attention.h"

#include "rondo/base/require.h"
#include "rondo/nn/attend_fused.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo::nn {
namespace {

Tensor project(const Linear& map, const LinearHook* hook, const Tensor& u, const Tensor& x,
               const Scope& scope) {
  return hook != nullptr ? hook->forward(map, u, x, scope) : map.forward(u, scope, Result::branch);
}

// Applies all maps to u at once; empty if one of them does not support that.
std::vector<Tensor> apply_together(const Tensor& u, const std::vector<LinearMap>& maps,
                                   const Scope& scope) {
  if (u.is_meta() || scope.watched()) return {};
  const bool bf16 = runs_in_bf16(Operation::linear, u.scalar_type());
  for (const LinearMap& map : maps) {
    if (!map.weight.defined() || !linear_is_fused(u, map.weight)) return {};
  }
  return fused_linears(u, maps, bf16, Result::branch);
}

// Low enough that its exp() next to any real score is zero; finite so that gradients stay defined.
constexpr double kHidden = -1e30;

// Addend of the scaled scores: bias · scale where visible, kHidden elsewhere; may be undefined.
Tensor score_addend(const AttendOptions& options) {
  Tensor addend = options.scaled_bias.defined() ? options.scaled_bias : options.bias;
  if (options.bias.defined() && options.scale.defined()) {
    addend = addend * options.scale.view({-1, 1, 1});
  }
  if (!options.mask.defined()) return addend;
  const Tensor hidden = options.mask.bitwise_not();  // logical_not() does not know the meta device
  if (!addend.defined()) {
    return at::zeros(hidden.sizes(), hidden.options().dtype(at::kFloat))
        .masked_fill_(hidden, kHidden);
  }
  return addend.masked_fill(hidden, kHidden);
}

// Whether every query sees a key. Masks with a batch dimension are assumed to have rows that do
// not.
bool everyone_sees(const Tensor& mask) {
  return mask.is_meta() || (mask.dim() <= 2 && mask.any(-1).all().item<bool>());
}

// attend() by plain operations: for other types and devices, for observers of the probabilities,
// and as the reference for the kernels.
Tensor attend_plainly(const Tensor& q, const Tensor& k, const Tensor& v,
                      const AttendOptions& options, bool training, const Scope& scope) {
  // Scale, bias and mask are small compared to the scores: fold the scale into the queries and the
  // rest into one addend, to minimize passes over the scores [B, H, Tq, Tk].
  Tensor scaled = options.factor == 1.0 ? q : q * options.factor;
  if (options.scale.defined()) scaled = scaled * options.scale.view({1, -1, 1, 1});
  Tensor scores = matmul(scaled, k.transpose(-2, -1), scope / "scores");  // [B, H, Tq, Tk]
  if (const Tensor addend = score_addend(options); addend.defined()) scores = scores + addend;
  const bool may_be_blind = options.mask.defined() && !everyone_sees(options.mask);
  const Tensor p = softmax(scores, may_be_blind ? options.mask : Tensor());
  scope.record("probabilities", p);
  return matmul(nn::dropout(p, options.dropout, training), v, scope / "values");  // [B, H, Tq, d]
}

}  // namespace

Tensor split_heads(const Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

Tensor merge_heads(const Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendOptions& options,
              bool training, const Scope& scope) {
  require(
      q.dim() == 4 && k.dim() == 4 && v.dim() == 4 && q.size(3) == k.size(3) &&
          k.size(2) == v.size(2),
      "attention: expected queries, keys and values [B, H, T, d], queries and keys of equal width, "
      "keys and values of equal length");
  if (scope.watched() && (options.factor != 1.0 || options.scale.defined())) {
    const double scores =
        static_cast<double>(q.numel() / q.size(3)) * static_cast<double>(k.size(2));
    (scope / "scores").elementwise(scores);
  }
  if (kernels_in_use() != Kernels::fused || !fused_attention_fits(q, k, v, options) ||
      scope.wants("probabilities")) {
    return attend_plainly(q, k, v, options, training, scope);
  }
  if (scope.watched()) {
    const double work = static_cast<double>(q.numel()) * static_cast<double>(k.size(2));
    (scope / "scores").multiply_adds(work);
    (scope / "values").multiply_adds(work);
  }
  return attend_fused(q, k, v, options, training);
}

Projections::Projections(const AttentionShape& shape, int64_t read) : shape_(shape) {
  const int64_t inner = shape.heads * shape.head_width;
  const auto map = [&](const char* name) {
    return register_module(name,
                           std::make_shared<Linear>(shape.width, inner, shape.bias, shape.input));
  };
  query_ = map("query");
  key_ = map("key");
  value_ = map("value");
  if (read == kNoOutput) return;
  output_ = register_module(
      "output",
      std::make_shared<Linear>(read == 0 ? inner : read, shape.width, shape.bias, shape.output));
}

Tensor Projections::query(const Tensor& u, const Tensor& x, const ProjectionHooks& hooks,
                          const Scope& scope) const {
  return split_heads(project(*query_, hooks.query, u, x, scope / "query"), shape_.heads);
}

Tensor Projections::key(const Tensor& u, const Tensor& x, const ProjectionHooks& hooks,
                        const Scope& scope) const {
  return split_heads(project(*key_, hooks.key, u, x, scope / "key"), shape_.heads);
}

Tensor Projections::value(const Tensor& u, const Tensor& x, const ProjectionHooks& hooks,
                          const Scope& scope) const {
  return split_heads(project(*value_, hooks.value, u, x, scope / "value"), shape_.heads);
}

Projections::Heads Projections::heads_of(const Tensor& u, const Tensor& x,
                                         const ProjectionHooks& hooks, const Scope& scope,
                                         const Linear* more) const {
  const auto as_map = [&](const Linear& map, const LinearHook* hook) {
    return hook != nullptr ? hook->as_map(map, u, x, scope) : map.map();
  };
  std::vector<LinearMap> maps = {as_map(*query_, hooks.query), as_map(*key_, hooks.key),
                                 as_map(*value_, hooks.value)};
  if (more != nullptr) maps.push_back(more->map());
  Heads heads;
  const std::vector<Tensor> flat = apply_together(u, maps, scope);  // [B, T, H·d]
  if (flat.empty()) {
    heads.q = query(u, x, hooks, scope);
    heads.k = key(u, x, hooks, scope);
    heads.v = value(u, x, hooks, scope);
    return heads;
  }
  heads.q = split_heads(flat[0], shape_.heads);
  heads.k = split_heads(flat[1], shape_.heads);
  heads.v = split_heads(flat[2], shape_.heads);
  if (more != nullptr) heads.more = split_heads(flat[3], shape_.heads);
  return heads;
}

Projections::Heads Projections::keys_and_values(const Tensor& memory, const Scope& scope) const {
  Heads heads;
  const std::vector<Tensor> flat = apply_together(memory, {key_->map(), value_->map()}, scope);
  heads.k = flat.empty() ? key(memory, memory, {}, scope) : split_heads(flat[0], shape_.heads);
  heads.v = flat.empty() ? value(memory, memory, {}, scope) : split_heads(flat[1], shape_.heads);
  return heads;
}

Tensor Projections::output(const Tensor& merged, const Scope& scope) const {
  return output_->forward(merged, scope / "output");
}

CompiledProjections Projections::compile(WeightPacker& packer) const {
  CompiledProjections maps;
  maps.query = query_->compile(packer);
  maps.key = key_->compile(packer);
  maps.value = value_->compile(packer);
  if (output_ != nullptr) maps.output = output_->compile(packer);
  maps.heads = shape_.heads;
  maps.head_width = shape_.head_width;
  return maps;
}

}  // namespace rondo::nn
