// The pyramid network.
#include "rondo/model/pyramid.h"

#include "rondo/model/vision.h"

namespace rondo {
namespace {

constexpr double kPyramidEpsilon = 1e-6;

int64_t first_side(const PyramidConfig& c) {
  return c.stem == "convolutions" ? c.image / 8 : (c.image - c.patch) / c.stride + 1;
}

std::shared_ptr<Stack> make_stage(const PyramidConfig& c, int64_t stage, DepthPlan plan) {
  const int64_t width = c.widths[static_cast<size_t>(stage)];
  const int64_t heads = c.heads[static_cast<size_t>(stage)];
  StackOptions o;
  o.width = width;
  o.placement = NormPlacement::pre;
  o.norm_epsilon = kPyramidEpsilon;
  o.feed_forward.width = width;
  o.feed_forward.hidden = static_cast<int64_t>(static_cast<double>(width) * c.hidden_ratio);
  o.feed_forward.hidden_dropout = c.dropout;
  o.feed_forward_up = nn::torch_init(width);
  o.feed_forward_down = nn::torch_init(o.feed_forward.hidden);
  o.mixing_dropout = c.dropout;
  o.feed_forward_dropout = c.dropout;
  o.recursive = c.depth.recursive;
  SelfAttentionOptions attention;
  attention.shape = {
      width, heads, width / heads, /*bias=*/true, nn::torch_init(width), nn::torch_init(width)};
  attention.permutation = c.depth.recursive.permutation;
  return std::make_shared<Stack>(
      o, std::move(plan), [&](int64_t) { return std::make_shared<SelfAttention>(attention); });
}

}  // namespace

PyramidStem::PyramidStem(const PyramidConfig& c) {
  const int64_t width = c.widths.front();
  const auto convolution = [&](const std::string& name, int64_t in, int64_t out, int64_t kernel,
                               nn::Convolution how) {
    convolutions_.push_back(
        register_module(name, std::make_shared<nn::Conv2d>(in, out, kernel, how)));
  };
  if (c.stem == "patch") {
    convolution("convolution", 3, width, c.patch, {c.stride, 0, 1});
    return;
  }
  int64_t in = 3;
  for (const int64_t out : {width / 2, width, width}) {
    const std::string number = std::to_string(convolutions_.size());
    convolution("convolution" + number, in, out, 3, {2, 1, 1});
    norms_.push_back(register_module("norm" + number, std::make_shared<nn::BatchNorm2d>(out)));
    in = out;
  }
}

Tensor PyramidStem::forward(const Tensor& images, const Scope& scope) {
  Tensor x = images;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    x = convolutions_[i]->forward(x, scope / "convolution");
    if (norms_.empty()) break;
    x = nn::activate(norms_[i]->forward(x, scope / "norm"), nn::Activation::relu);
  }
  return x;
}

std::vector<nn::CompiledConvolution> PyramidStem::compile(nn::WeightPacker& packer) const {
  std::vector<nn::CompiledConvolution> compiled;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    nn::Conv2d::CompileOptions how;
    how.planar = i == 0;
    how.relu = !norms_.empty();
    if (!norms_.empty()) how.norm = norms_[i].get();
    compiled.push_back(convolutions_[i]->compile(packer, how));
  }
  return compiled;
}

void PyramidStem::batches_per_step(int64_t batches) {
  for (const auto& norm : norms_) norm->batches_per_step(batches);
}

Pyramid::Pyramid(const PyramidConfig& config) : config_(config) {
  const PyramidConfig& c = config_;
  const int64_t first = c.widths.front();
  stem_ = register_module("stem", std::make_shared<PyramidStem>(c));
  positions_ = parameter("positions", {1, first, first_side(c), first_side(c)}, nn::normal(0.02));
  if (c.class_token) class_token_ = parameter("class_token", {1, 1, first}, nn::normal(0.02));

  std::vector<DepthPlan> plans;
  int64_t total = 0;
  for (int64_t s = 0; s < c.stages(); ++s) {
    plans.push_back(make_plan(c.depth, PlanShape{}, s));
    total += plans.back().size();
  }
  stages_ = register_module("stage", std::make_shared<nn::Bank<Stack>>());
  pools_ = register_module("pool", std::make_shared<nn::Bank<nn::Conv2d>>());
  token_pools_ = register_module("token_pool", std::make_shared<nn::Bank<nn::Linear>>());
  int64_t before = 0;
  for (int64_t s = 0; s < c.stages(); ++s) {
    DepthPlan& plan = plans[static_cast<size_t>(s)];
    set_drop_path(plan, c.drop_path, before, total);
    before += plan.size();
    stages_->add(make_stage(c, s, plan));
    if (s + 1 == c.stages()) break;
    const int64_t in = c.widths[static_cast<size_t>(s)];
    const int64_t out = c.widths[static_cast<size_t>(s) + 1];
    pools_->add(std::make_shared<nn::Conv2d>(in, out, 3, nn::Convolution{2, 1, in}));
    if (c.class_token) token_pools_->add(std::make_shared<nn::Linear>(in, out, true));
  }
  const int64_t last = c.widths.back();
  norm_ = register_module("norm",
                          std::make_shared<nn::Norm>(nn::NormKind::layer, last, kPyramidEpsilon));
  head_ = register_module("head", std::make_shared<nn::Linear>(last, c.classes, true));
}

std::map<std::string, Stack*> Pyramid::stacks() const {
  std::map<std::string, Stack*> stacks;
  for (int64_t s = 0; s < stages_->size(); ++s) {
    stacks["stage." + std::to_string(s)] = &(*stages_)[s];
  }
  return stacks;
}

Pyramid::Features Pyramid::run_stage(int64_t stage, const Features& in, bool shallow,
                                     ForwardContext& context, const Scope& scope) {
  const Shape map = in.map.sizes().vec();
  Tensor x = in.map.flatten(2).transpose(1, 2);  // [B, h·w, C]
  if (in.class_token.defined()) x = at::cat({in.class_token, x}, 1);
  Stack& stack = (*stages_)[stage];
  const Scope here = scope / "stage" / stage;
  x = shallow ? stack.forward_plan(first_loops(stack.plan()), x, context, here)
              : stack.forward(x, context, here);
  Features out;
  if (in.class_token.defined()) {
    out.class_token = x.narrow(1, 0, 1);
    x = x.narrow(1, 1, x.size(1) - 1);
  }
  out.map = x.transpose(1, 2).reshape(map);
  here.record("map", out.map);
  return out;
}

Pyramid::Features Pyramid::pool(int64_t stage, const Features& in, const Scope& scope) {
  const Scope here = scope / "pool" / stage;
  Features out;
  out.map = (*pools_)[stage].forward(in.map, here);
  if (in.class_token.defined()) {
    out.class_token = (*token_pools_)[stage].forward(in.class_token, here);
  }
  here.record("map", out.map);
  return out;
}

Tensor Pyramid::run(const Tensor& stem, bool shallow, ForwardContext& context, const Scope& scope) {
  Features f;
  f.map = stem;
  if (class_token_.defined()) f.class_token = class_token_.expand({stem.size(0), -1, -1});
  for (int64_t s = 0; s < config_.stages(); ++s) {
    f = run_stage(s, f, shallow, context, scope);
    if (s + 1 < config_.stages()) f = pool(s, f, scope);
  }
  Tensor pooled;  // [B, C]
  if (class_token_.defined()) {
    pooled = f.class_token.squeeze(1);
  } else {
    pooled = f.map.mean(at::IntArrayRef{2, 3});
  }
  const Tensor y = norm_->forward(pooled, scope / "norm");
  scope.record("features", y);
  return head_->forward(y, scope / "head");
}

NamedTensors Pyramid::forward(const NamedTensors& inputs, State& /*state*/, const Scope& scope) {
  const Tensor images = require_images(inputs, config_.image);
  Tensor x = stem_->forward(images, scope / "stem");
  (scope / "stem").record("map", x);
  (scope / "positions").elementwise(x);
  x = nn::dropout(x + positions_, config_.dropout, is_training());
  Permutations permutations = image_permutations(inputs, config_.depth.recursive, is_training());
  ForwardContext context;
  context.permutations = &permutations;
  NamedTensors outputs = {{"logits", run(x, false, context, scope)}};
  if (config_.mixed_depth && is_training()) {
    outputs["logits_shallow"] = run(x, true, context, scope / "shallow");
  }
  return outputs;
}

std::shared_ptr<const CompiledImageNetwork> Pyramid::compile() const {
  const at::NoGradGuard no_grad;
  auto compiled = std::make_shared<CompiledImageNetwork>();
  CompiledImageNetwork& n = *compiled;
  n.side_ = config_.image;
  n.stem_ = stem_->compile(n.packer_);
  n.class_token_ = n.packer_.vector(class_token_);
  Tensor positions = positions_.flatten(2).squeeze(0).t();  // [h·w, C]
  if (class_token_.defined()) positions = at::cat({at::zeros({1, positions.size(1)}), positions});
  n.positions_ = n.packer_.vector(positions);
  int64_t side = first_side(config_);
  for (int64_t s = 0; s < config_.stages(); ++s) {
    n.stages_.emplace_back();
    CompiledImageStage& stage = n.stages_.back();
    stage.side = side;
    stage.stack = (*stages_)[s].compile_sequences(n.packer_, /*fold_signals=*/false);
    if (s + 1 == config_.stages()) break;
    stage.pool = (*pools_)[s].compile(n.packer_, {});
    if (class_token_.defined()) stage.pool_class = (*token_pools_)[s].compile(n.packer_);
    side = stage.pool.shape.side(side);
  }
  n.pooling_ = class_token_.defined() ? ImagePooling::class_token : ImagePooling::norm_of_mean;
  n.norm_ = norm_->compile(n.packer_);
  n.head_ = head_->compile(n.packer_);
  n.close(config_.depth.recursive.eval_permutation == "random");
  return compiled;
}

Tensor Pyramid::loss(const NamedTensors& inputs, const NamedTensors& outputs) const {
  return image_loss(inputs, outputs);
}

NamedTensors Pyramid::example(int64_t /*tokens*/) const {
  return {{"images", at::empty({1, 3, config_.image, config_.image},
                               at::TensorOptions(at::kFloat).device(at::kMeta))}};
}

}  // namespace rondo
