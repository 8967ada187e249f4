// The flat vision network.
#include "rondo/model/vision.h"

#include "rondo/nn/position.h"

namespace rondo {
namespace {

constexpr double kFinalEpsilon = 1e-6;

bool deit_init(const VisionConfig& c) { return c.init == "deit"; }

nn::LinearInit attention_laws(const VisionConfig& c) {
  return deit_init(c) ? nn::LinearInit{nn::normal(0.02), nn::constant(0.0)}
                      : nn::torch_init(c.width);
}

nn::LinearInit feed_forward_laws(const VisionConfig& c) {
  if (deit_init(c)) return {nn::normal(0.02), nn::constant(0.0)};
  return {nn::xavier_uniform(c.width, c.hidden), nn::normal(1e-6)};
}

StackOptions vision_stack_options(const VisionConfig& c, const DepthPlan& plan) {
  StackOptions o;
  o.width = c.width;
  o.placement = NormPlacement::pre;
  o.norm_epsilon = level_epsilon(c.norm_epsilon, plan);
  o.feed_forward.width = c.width;
  o.feed_forward.hidden = c.hidden;
  o.feed_forward.hidden_dropout = c.dropout;
  o.feed_forward_up = feed_forward_laws(c);
  o.feed_forward_down = feed_forward_laws(c);
  o.feed_forward_dropout = c.dropout;
  o.inner = c.width;
  o.ring = c.depth.ring;
  o.recursive = c.depth.recursive;
  return o;
}

int64_t patch_count(const VisionConfig& c) {
  const int64_t side = c.image / c.patch;
  return side * side;
}

std::shared_ptr<TokenMixing> vision_mixing(const VisionConfig& c) {
  if (c.mixing == "feed-forward") {
    return std::make_shared<TokenFeedForward>(patch_count(c), c.token_hidden);
  }
  SelfAttentionOptions o;
  o.shape = {c.width,       c.heads,           c.width / c.heads,
             /*bias=*/true, attention_laws(c), attention_laws(c)};
  o.permutation = c.depth.recursive.permutation;
  return std::make_shared<SelfAttention>(o);
}

DepthPlan vision_plan(const VisionConfig& c) {
  DepthPlan plan = make_plan(c.depth, PlanShape{});
  set_drop_path(plan, c.drop_path, 0, std::max<int64_t>(1, plan.mixings() - 1));
  return plan;
}

}  // namespace

Vision::Vision(const VisionConfig& config) : config_(config) {
  const VisionConfig& c = config_;
  patches_ = register_module(
      "patches", std::make_shared<nn::Conv2d>(3, c.width, c.patch, nn::Convolution{c.patch, 0, 1}));
  const bool deit = deit_init(c);
  if (c.pool == "class") {
    class_token_ =
        parameter("class_token", {1, 1, c.width}, deit ? nn::normal(0.02) : nn::constant(0.0));
  }
  const int64_t tokens = patch_count(c) + (c.pool == "class" ? 1 : 0);
  if (c.positions == "learned") {
    positions_ = parameter("positions", {1, tokens, c.width}, nn::normal(0.02));
  }
  const DepthPlan plan = vision_plan(c);
  stack_ =
      register_module("stack", std::make_shared<Stack>(vision_stack_options(c, plan), plan,
                                                       [&c](int64_t) { return vision_mixing(c); }));
  norm_ = register_module("norm",
                          std::make_shared<nn::Norm>(nn::NormKind::layer, c.width, kFinalEpsilon));
  const nn::LinearInit head_laws =
      deit ? nn::LinearInit{nn::normal(0.02), nn::constant(0.0)} : nn::torch_init(c.width);
  head_ =
      register_module("head", std::make_shared<nn::Linear>(c.width, c.classes, true, head_laws));
}

Tensor Vision::embed_patches(const Tensor& images, const Scope& scope) {
  Tensor x = patches_->forward(images, scope / "patches").flatten(2).transpose(1, 2);  // [B, T, D]
  if (class_token_.defined()) {
    x = at::cat({class_token_.expand({x.size(0), -1, -1}), x}, 1);
  }
  if (config_.positions != "none") (scope / "positions").elementwise(x);
  if (positions_.defined()) x = x + positions_;
  if (config_.positions == "sinusoidal") {
    x = x + nn::sinusoidal_positions(0, x.size(1), config_.width, x.options());
  }
  return nn::dropout(x, config_.dropout, is_training());
}

Tensor Vision::classify(const Tensor& x, const Scope& scope) const {
  const Tensor y = norm_->forward(x, scope / "norm");
  scope.record("encoded", y);
  const Tensor pooled = config_.pool == "class" ? y.select(1, 0) : y.mean(1);  // [B, D]
  return head_->forward(pooled, scope / "head");
}

NamedTensors Vision::forward(const NamedTensors& inputs, State& /*state*/, const Scope& scope) {
  const Tensor x = embed_patches(require_images(inputs, config_.image), scope);
  scope.record("embedded", x);
  Permutations permutations = image_permutations(inputs, config_.depth.recursive, is_training());
  ForwardContext context;
  context.permutations = &permutations;
  context.positions = at::arange(x.size(1), at::kLong).unsqueeze(0);  // [1, T]
  NamedTensors outputs = {
      {"logits", classify(stack_->forward(x, context, scope / "stack"), scope)}};
  if (config_.mixed_depth && is_training()) {
    const Tensor y =
        stack_->forward_plan(first_loops(stack_->plan()), x, context, scope / "shallow");
    outputs["logits_shallow"] = classify(y, scope / "shallow");
  }
  return outputs;
}

std::shared_ptr<const CompiledImageNetwork> Vision::compile() const {
  const at::NoGradGuard no_grad;
  const VisionConfig& c = config_;
  auto compiled = std::make_shared<CompiledImageNetwork>();
  CompiledImageNetwork& n = *compiled;
  n.side_ = c.image;
  nn::Conv2d::CompileOptions first;
  first.planar = true;
  n.stem_.push_back(patches_->compile(n.packer_, first));
  n.class_token_ = n.packer_.vector(class_token_);
  Tensor positions = positions_;
  if (c.positions == "sinusoidal") {
    const int64_t tokens = patch_count(c) + (class_token_.defined() ? 1 : 0);
    positions = nn::sinusoidal_positions(0, tokens, c.width, at::TensorOptions(at::kFloat));
  }
  n.positions_ = n.packer_.vector(positions);
  n.stages_.emplace_back();
  n.stages_.back().side = c.image / c.patch;
  n.stages_.back().stack = stack_->compile_sequences(n.packer_, /*fold_signals=*/false);
  n.pooling_ = c.pool == "class" ? ImagePooling::class_token : ImagePooling::mean_of_norms;
  n.norm_ = norm_->compile(n.packer_);
  n.head_ = head_->compile(n.packer_);
  n.close(c.depth.recursive.eval_permutation == "random");
  return compiled;
}

Tensor Vision::loss(const NamedTensors& inputs, const NamedTensors& outputs) const {
  return image_loss(inputs, outputs);
}

NamedTensors Vision::example(int64_t /*tokens*/) const {
  return {{"images", at::empty({1, 3, config_.image, config_.image},
                               at::TensorOptions(at::kFloat).device(at::kMeta))}};
}

Permutations image_permutations(const NamedTensors& inputs, const RecursiveConfig& config,
                                bool training) {
  std::vector<Tensor> given;
  for (int64_t i = 0;; ++i) {
    const auto found = inputs.find("permutation." + std::to_string(i));
    if (found == inputs.end()) break;
    given.push_back(found->second);
  }
  if (!given.empty()) return Permutations(std::move(given));
  const bool random = training || config.eval_permutation == "random";
  return Permutations(random ? Permutations::Draw::random : Permutations::Draw::fixed);
}

Tensor image_loss(const NamedTensors& outputs, const std::function<Tensor(const Tensor&)>& loss) {
  const Tensor deep = loss(outputs.at("logits"));
  const auto shallow = outputs.find("logits_shallow");
  return shallow == outputs.end() ? deep : (deep + loss(shallow->second)) / 2.0;
}

Tensor image_loss(const NamedTensors& inputs, const NamedTensors& outputs) {
  const Tensor labels = require_input(inputs, "labels", at::kLong, 1);
  return image_loss(outputs,
                    [&](const Tensor& logits) { return mean_cross_entropy(logits, labels); });
}

}  // namespace rondo
