// Executing a depth plan.
#include "rondo/recurrence/stack.h"

#include "rondo/base/error.h"
#include "rondo/nn/recompute.h"

namespace rondo {
namespace {

template <class Part, class Make>
std::shared_ptr<nn::Bank<Part>> fill_bank(int64_t count, const Make& make) {
  auto bank = std::make_shared<nn::Bank<Part>>();
  for (int64_t i = 0; i < count; ++i) bank->add(make(i));
  return bank;
}

// The context of a call, with copies of everything that levels change, for recomputation.
struct ContextSnapshot {
  explicit ContextSnapshot(const ForwardContext& given) : context(given) {
    if (given.state != nullptr) state = *given.state;
    if (given.permutations != nullptr) permutations = *given.permutations;
  }
  ForwardContext& bound() {
    if (context.state != nullptr) context.state = &state;
    if (context.permutations != nullptr) context.permutations = &permutations;
    return context;
  }
  ForwardContext context;
  State state;
  Permutations permutations = Permutations(Permutations::Draw::fixed);
};

void record_sum(const char* name, Stream& stream, const Scope& scope) {
  if (!scope.wants(name)) return;
  stream = {nn::weighted_sum(stream)};
  scope.record(name, stream.x);
}

}  // namespace

Stack::Stack(const StackOptions& options, DepthPlan plan, const MakeMixing& make_mixing,
             const nn::AttentionShape& cross)
    : options_(options), plan_(std::move(plan)) {
  const StackOptions& o = options_;
  mixings_ = register_module("mixing", fill_bank<TokenMixing>(plan_.mixings(), make_mixing));
  crosses_ = register_module("cross", fill_bank<CrossAttention>(plan_.crosses(), [&](int64_t) {
                               return std::make_shared<CrossAttention>(cross);
                             }));
  feed_forwards_ = register_module("feed_forward",
                                   fill_bank<nn::FeedForward>(plan_.feed_forwards(), [&](int64_t) {
                                     return std::make_shared<nn::FeedForward>(
                                         o.feed_forward, o.feed_forward_up, o.feed_forward_down);
                                   }));
  norms_ = register_module("norm", fill_bank<nn::Norm>(plan_.norms(), [&](int64_t) {
                             return std::make_shared<nn::Norm>(o.norm, o.width, o.norm_epsilon);
                           }));
  signals_ = register_module("signal", fill_bank<LevelSignals>(plan_.signals(), [&](int64_t) {
                               return std::make_shared<LevelSignals>(o.ring, o.width, o.inner,
                                                                     o.feed_forward.hidden);
                             }));
  residuals_ = register_module(
      "residual", fill_bank<ResidualCoefficients>(plan_.residuals(), [&](int64_t) {
        const int64_t sublayers =
            1 + int64_t{plan_.crosses() > 0} + int64_t{plan_.feed_forwards() > 0};
        return std::make_shared<ResidualCoefficients>(o.recursive.residual, sublayers);
      }));
  projections_ = register_module(
      "projection", fill_bank<LoopProjection>(plan_.projections(), [&](int64_t) {
        return std::make_shared<LoopProjection>(o.recursive, o.width, o.norm_epsilon);
      }));
}

Tensor Stack::forward(Tensor x, ForwardContext& context, const Scope& scope) {
  return forward_plan(plan_, std::move(x), context, scope);
}

Tensor Stack::forward_plan(const DepthPlan& plan, Tensor x, ForwardContext& context,
                           const Scope& scope) {
  const bool recompute = recompute_every_ > 0 && plan.crosses() == 0 && is_training() &&
                         at::GradMode::is_enabled() && x.requires_grad();
  return recompute ? forward_recomputing(plan, std::move(x), context, scope)
                   : forward_range(plan, 0, plan.size(), std::move(x), context, scope);
}

Tensor Stack::forward_range(const DepthPlan& plan, int64_t first, int64_t last, Tensor x,
                            ForwardContext& context, const Scope& scope) {
  Stream stream = {std::move(x)};
  for (int64_t i = first; i < last; ++i) {
    const Scope here = scope / "level" / i;
    stream =
        forward_level(plan.levels[static_cast<size_t>(i)], i, std::move(stream), context, here);
    record_sum("output", stream, here);
  }
  return nn::weighted_sum(stream);
}

Tensor Stack::forward_recomputing(const DepthPlan& plan, Tensor x, ForwardContext& context,
                                  const Scope& scope) {
  const auto kept_plan = std::make_shared<DepthPlan>(plan);
  for (int64_t first = 0; first < plan.size(); first += recompute_every_) {
    const int64_t last = std::min(plan.size(), first + recompute_every_);
    const auto before = std::make_shared<ContextSnapshot>(context);
    x = nn::recompute_in_backward(
        x, [&](const Tensor& in) { return forward_range(plan, first, last, in, context, scope); },
        [this, kept_plan, first, last, before](const Tensor& in) {
          ContextSnapshot again = *before;
          return forward_range(*kept_plan, first, last, in, again.bound(), Scope());
        });
  }
  return x;
}

Stream Stack::forward_level(const Level& level, int64_t number, Stream stream,
                            ForwardContext& context, const Scope& scope) {
  if (level.static_signal != kNone) {
    const Tensor x = nn::weighted_sum(stream);
    (scope / "signal").elementwise(x);
    stream = {x,
              static_signal(context.positions, level.static_signal, options_.width, x.options())};
  }
  stream = forward_mixing(level, number, stream, context, scope);
  if (level.cross != kNone) stream = forward_cross(level, stream, context, scope);
  if (level.feed_forward != kNone) stream = forward_feed_forward(level, stream, scope);
  record_sum("block", stream, scope);
  if (level.projection == kNone) return stream;
  return (*projections_)[level.projection].forward(stream, scope / "projection");
}

nn::NormedSum Stack::norm_before(int64_t norm, const Stream& stream, const Scope& scope) const {
  if (options_.placement == NormPlacement::pre) {
    return (*norms_)[norm].forward(stream, scope / "norm", nn::Result::branch);
  }
  const Tensor x = nn::weighted_sum(stream);
  return {x, x};
}

Stream Stack::join(const Level& level, int64_t sublayer, int64_t norm, const Tensor& x,
                   const Tensor& branch, const Scope& scope) const {
  scope.elementwise(x);
  const Tensor kept = nn::drop_path(branch, level.drop_path, is_training());
  const Stream joined = level.residual == kNone
                            ? Stream{x, kept}
                            : (*residuals_)[level.residual].join(sublayer, x, kept);
  if (options_.placement == NormPlacement::pre) return joined;
  return {(*norms_)[norm].forward(joined, scope / "norm").norm};
}

Stream Stack::forward_mixing(const Level& level, int64_t number, const Stream& stream,
                             ForwardContext& context, const Scope& scope) {
  const Scope here = scope / "mixing";
  const nn::NormedSum x = norm_before(level.mixing_norm, stream, here);
  MixingInput in;
  in.u = x.norm;
  in.x = x.sum;
  if (level.signal != kNone) in.hooks = (*signals_)[level.signal].projections();
  in.level = number;
  in.loop = level.loop;
  in.groups = level.groups;
  const Tensor y = (*mixings_)[level.mixing].forward(in, context, here);
  return join(level, kMixingSublayer, level.mixing_norm, x.sum,
              nn::dropout(y, options_.mixing_dropout, is_training()), here);
}

Stream Stack::forward_cross(const Level& level, const Stream& stream, ForwardContext& context,
                            const Scope& scope) {
  const Scope here = scope / "cross";
  const nn::NormedSum x = norm_before(level.cross_norm, stream, here);
  const Tensor y = (*crosses_)[level.cross].forward(x.norm, level.cross, context, here);
  return join(level, kCrossSublayer, level.cross_norm, x.sum,
              nn::dropout(y, options_.mixing_dropout, is_training()), here);
}

Stream Stack::forward_feed_forward(const Level& level, const Stream& stream, const Scope& scope) {
  const Scope here = scope / "feed_forward";
  nn::NormedSum x;
  Tensor inner;
  if (level.signal != kNone) {
    const LevelSignals& signals = (*signals_)[level.signal];
    x.sum = nn::weighted_sum(stream);
    const Stream signaled = {signals.feed_forward_input(x.sum, here / "signal")};
    inner = signals.feed_forward_inner(x.sum, here / "signal");
    x.norm = norm_before(level.feed_forward_norm, signaled, here).norm;
  } else {
    x = norm_before(level.feed_forward_norm, stream, here);
  }
  const Tensor y = (*feed_forwards_)[level.feed_forward].forward(x.norm, inner, here);
  return join(level, feed_forward_sublayer(level), level.feed_forward_norm, x.sum,
              nn::dropout(y, options_.feed_forward_dropout, is_training()), here);
}

void Stack::describe_state(const StatePlace& place, StateLayout& layout) const {
  for (int64_t i = 0; i < plan_.size(); ++i) mixing_of(i).describe_state(i, place, layout);
}

void Stack::reset_state(const Tensor& fresh, State& state) const {
  for (int64_t i = 0; i < plan_.size(); ++i) mixing_of(i).reset_state(i, fresh, state);
}

int64_t Stack::block() const {
  int64_t tokens = 0;
  for (int64_t i = 0; i < mixings_->size(); ++i) tokens = std::max(tokens, (*mixings_)[i].block());
  return tokens;
}

bool Stack::has_states() const {
  for (int64_t i = 0; i < mixings_->size(); ++i) {
    if ((*mixings_)[i].state_readers() != StateReaders::none) return true;
  }
  return false;
}

int64_t Stack::feedback_level() const {
  int64_t source = kNone;
  for (int64_t i = 0; i < plan_.size(); ++i) {
    if (mixing_of(i).state_readers() == StateReaders::all) source = i;
  }
  return source;
}

}  // namespace rondo
