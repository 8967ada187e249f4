// Compiling a stack for inference: every part compiles itself.
#include <algorithm>

#include "rondo/recurrence/stack.h"

namespace rondo {

CompiledStack Stack::compile(nn::WeightPacker& packer, const CompileOptions& options) const {
  CompiledStack c;
  c.feedback_level_ = feedback_level();
  for (int64_t i = 0; i < mixings_->size(); ++i) {
    c.mixings_.push_back((*mixings_)[i].compile(packer));
    const nn::CompiledProjections& maps = c.mixings_.back()->maps();
    c.inner_ = std::max(c.inner_, maps.heads * maps.head_width);
  }
  compile_parts(packer, c);
  for (const Level& level : plan_.levels) {
    CompiledLevel l = compile_level(level, packer, c);
    l.mixing = c.mixings_[static_cast<size_t>(level.mixing)].get();
    l.maps = &l.mixing->maps();
    if (options.fold_signals && folds(level)) fold_level(level, packer, l, c);
    c.levels_.push_back(l);
  }
  return c;
}

CompiledSequenceStack Stack::compile_sequences(nn::WeightPacker& packer, bool fold_signals) const {
  CompiledSequenceStack c;
  for (int64_t i = 0; i < mixings_->size(); ++i) {
    c.mixings_.push_back((*mixings_)[i].compile_sequences(packer));
    const nn::CompiledProjections* maps = c.mixings_.back()->maps();
    const int64_t inner = maps != nullptr ? maps->heads * maps->head_width : options_.width;
    c.inner_ = std::max(c.inner_, inner);
  }
  compile_parts(packer, c);
  for (const Level& level : plan_.levels) {
    CompiledLevel l = compile_level(level, packer, c);
    l.sequence = c.mixings_[static_cast<size_t>(level.mixing)].get();
    l.maps = l.sequence->maps();
    if (fold_signals && folds(level)) fold_level(level, packer, l, c);
    c.levels_.push_back(l);
  }
  return c;
}

void Stack::compile_parts(nn::WeightPacker& packer, CompiledLevels& c) const {
  c.post_norm_ = options_.placement == NormPlacement::post;
  c.width_ = options_.width;
  const auto compile_bank = [&](const auto& bank, auto& to) {
    using Compiled = typename std::decay_t<decltype(to)>::value_type::element_type;
    for (int64_t i = 0; i < bank.size(); ++i) {
      to.push_back(std::make_unique<Compiled>(bank[i].compile(packer)));
    }
  };
  compile_bank(*crosses_, c.crosses_);
  compile_bank(*feed_forwards_, c.feed_forwards_);
  compile_bank(*signals_, c.signals_);
  compile_bank(*projections_, c.projections_);
  for (const auto& f : c.feed_forwards_) c.hidden_ = std::max(c.hidden_, f->up.w.out);
  for (const auto& p : c.projections_) c.hidden_ = std::max(c.hidden_, p->feed_forward.up.w.out);
  for (const auto& s : c.signals_) {
    for (const auto* g : {&s->query, &s->key, &s->value, &s->feed_forward}) {
      c.rank_ = std::max(c.rank_, g->rank());
    }
  }
}

bool Stack::folds(const Level& level) const {
  return level.signal != kNone && options_.placement == NormPlacement::post &&
         (*mixings_)[level.mixing].projections() != nullptr;
}

// Creates maps for this level alone, with its signals folded in.
void Stack::fold_level(const Level& level, nn::WeightPacker& packer, CompiledLevel& l,
                       CompiledLevels& stack) const {
  const bool feeds = level.feed_forward != kNone;
  const LevelSignals::Folded folded =
      (*signals_)[level.signal].fold(*(*mixings_)[level.mixing].projections(),
                                     feeds ? &(*feed_forwards_)[level.feed_forward] : nullptr);
  auto maps = std::make_unique<nn::CompiledProjections>(*l.maps);
  if (folded.query != nullptr) {
    maps->query = folded.query->compile(packer);
    maps->key = folded.key->compile(packer);
    maps->value = folded.value->compile(packer);
  }
  l.maps = maps.get();
  stack.own_maps_.push_back(std::move(maps));
  if (folded.up != nullptr) {
    auto feed = std::make_unique<nn::CompiledFeedForward>(*l.feed_forward);
    feed->up = folded.up->compile(packer);
    l.feed_forward = feed.get();
    stack.own_feed_forwards_.push_back(std::move(feed));
  }
  l.signals = nullptr;
}

// Everything except the token mixing and its maps.
CompiledLevel Stack::compile_level(const Level& level, nn::WeightPacker& packer,
                                   CompiledLevels& stack) const {
  const auto in = [](const auto& bank, int64_t index) {
    return index != kNone ? bank[static_cast<size_t>(index)].get() : nullptr;
  };
  const auto join = [&](int64_t sublayer) {
    return level.residual != kNone ? (*residuals_)[level.residual].compile(sublayer)
                                   : CompiledJoin();
  };
  CompiledLevel l;
  l.loop = level.loop;
  l.groups = level.groups;
  l.mixing_norm = (*norms_)[level.mixing_norm].compile(packer);
  l.mixing_join = join(kMixingSublayer);
  l.cross = in(stack.crosses_, level.cross);
  if (l.cross != nullptr) {
    l.memory = static_cast<size_t>(level.cross);
    l.cross_norm = (*norms_)[level.cross_norm].compile(packer);
    l.cross_join = join(kCrossSublayer);
  }
  l.feed_forward = in(stack.feed_forwards_, level.feed_forward);
  if (l.feed_forward != nullptr) {
    l.feed_forward_norm = (*norms_)[level.feed_forward_norm].compile(packer);
    l.feed_forward_join = join(feed_forward_sublayer(level));
  }
  l.signals = in(stack.signals_, level.signal);
  l.projection = in(stack.projections_, level.projection);
  if (level.static_signal != kNone) {
    l.static_signal = level.static_signal;
    if (!stack.static_signal_.there()) {
      stack.static_signal_ = CompiledStaticSignal(plan_.size(), options_.width);
    }
  }
  return l;
}

}  // namespace rondo
