// Multi-head attention: projections with signals, scores, softmax, values.
#include "rondo/nn/attention.h"

namespace rondo::nn {
namespace {

Tensor project(const Linear& map, const LowRank* signal, SignalPlace place, const Tensor& u,
               const Tensor& x, const Scope& scope) {
  if (signal == nullptr) return map.forward(u, scope);
  const Tensor g = signal->forward(x, scope / "signal");
  return place == SignalPlace::after ? map.forward(u, scope) + g : map.forward(u + g, scope);
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
  Tensor scores = matmul(options.factor == 1.0 ? q : q * options.factor, k.transpose(-2, -1),
                         scope / "scores");  // [B, H, Tq, Tk]
  if (options.bias.defined()) scores = scores + options.bias;
  if (options.scale.defined()) scores = scores * options.scale.view({1, -1, 1, 1});
  const Tensor p = masked_softmax(scores, options.visible);
  scope.record("probabilities", p);
  return matmul(nn::dropout(p, options.dropout, training), v, scope / "values");  // [B, H, Tq, d]
}

Projections::Projections(const AttentionShape& shape, int64_t read) : shape_(shape) {
  const int64_t inner = shape.heads * shape.head_width;
  const auto map = [&](const char* name) {
    return register_module(
        name, std::make_shared<Linear>(shape.width, inner, shape.bias, shape.input));
  };
  query_ = map("query");
  key_ = map("key");
  value_ = map("value");
  if (read == kNoOutput) return;
  output_ = register_module("output", std::make_shared<Linear>(read == 0 ? inner : read, shape.width,
                                                               shape.bias, shape.output));
}

Tensor Projections::query(const Tensor& u, const Tensor& x, const ProjectionSignals& signals,
                          const Scope& scope) const {
  return split_heads(project(*query_, signals.query, signals.place, u, x, scope / "query"),
                     shape_.heads);
}

Tensor Projections::key(const Tensor& u, const Tensor& x, const ProjectionSignals& signals,
                        const Scope& scope) const {
  return split_heads(project(*key_, signals.key, signals.place, u, x, scope / "key"),
                     shape_.heads);
}

Tensor Projections::value(const Tensor& u, const Tensor& x, const ProjectionSignals& signals,
                          const Scope& scope) const {
  return split_heads(project(*value_, signals.value, signals.place, u, x, scope / "value"),
                     shape_.heads);
}

Tensor Projections::output(const Tensor& merged, const Scope& scope) const {
  return output_->forward(merged, scope / "output");
}

}  // namespace rondo::nn
