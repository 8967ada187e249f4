// The loop over levels for one token.
#include "rondo/decode/step_loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace rondo {

namespace {

// Room for products to read and write whole panels.
std::vector<float> padded_row(int64_t count) {
  return std::vector<float>(static_cast<size_t>(kernels::round_up(count, kernels::kPanel)));
}

// g(x) → y.
void apply_signal(const StepSignal& g, const float* x, std::vector<float>& low,
                  std::vector<float>& y) {
  if (g.down.out > 0) {
    kernels::matvec(g.down, x, 0, g.down.panels(), low.data());
    x = low.data();
  }
  kernels::matvec(g.up, x, 0, g.up.panels(), y.data());
}

constexpr float kHeadEpsilon = 1e-6F;  // as WindowAttention::unit_length

}  // namespace

StepLoop::StepLoop(std::shared_ptr<const StepWeights> weights, int threads)
    : weights_(std::move(weights)), team_(threads), choice_(team_.size()) {
  const LanguageModelConfig& c = weights_->config();
  const int64_t inner = c.heads * c.head_width;
  int64_t hidden = c.hidden;
  int64_t low = 1;
  for (const StepLevel& level : weights_->levels()) {
    if (level.projection.feed != nullptr) hidden = std::max(hidden, level.projection.feed->up.out);
    for (const StepSignal& s : level.signals) low = std::max(low, s.down.out);
    low = std::max(low, level.feed.signal.down.out);
  }
  const int64_t widest = std::max({c.width, inner, hidden});
  x_ = padded_row(c.width);
  for (Row* row : {&q_, &k_, &v_, &state_q_}) *row = padded_row(inner + 1);  // an even width of q
  heads_ = padded_row(2 * inner);
  hidden_ = padded_row(hidden);
  y_ = padded_row(c.width);
  logits_ = padded_row(c.vocabulary);
  own_.resize(static_cast<size_t>(team_.size()));
  for (Own& own : own_) {
    own.u = padded_row(c.width);
    own.low = padded_row(low);
    own.scores = padded_row(std::max(c.time.window + 1, c.time.states) + kernels::kRoundedScores);
    for (Row& row : own.signals) row = padded_row(widest);
    for (Row& row : own.inputs) row = padded_row(widest);
  }
  if (weights_->head().format != kernels::PackedFormat::fp32) {
    rounded_ = std::make_unique<RoundedWindow>(static_cast<int64_t>(weights_->levels().size()),
                                               c.heads, c.time.window, c.head_width);
  }
  views_.resize(weights_->levels().size());
  position_code_.resize(weights_->rates().size());
}

StepLoop::View StepLoop::view_of(const StepCaches& caches, size_t level) const {
  const LevelCache& cache = caches.levels[level];
  View view;
  view.keys = cache.keys.data_ptr<float>();
  view.values = cache.values.data_ptr<float>();
  view.bias = cache.bias.data_ptr<float>();
  if (!weights_->levels()[level].mixing->reads_states()) return view;
  const int64_t fed = weights_->feedback_level();
  const LevelCache& source =
      cache.state_keys.defined() ? cache : caches.levels[static_cast<size_t>(fed)];
  view.state_keys = source.state_keys.data_ptr<float>();
  view.state_values = source.state_values.data_ptr<float>();
  view.states = source.state_keys.size(2);
  view.state_head = source.state_keys.stride(1);
  view.state_row = source.state_keys.stride(2);
  return view;
}

const float* StepLoop::step(int64_t token, StepCaches& caches) {
  phase_ = caches.phase;
  behind_ = caches.position.data_ptr<int64_t>()[0];
  if (phase_ == 0 || caches_are_new_) look_at(caches);
  std::copy_n(weights_->embedding(token), weights_->config().width, x_.begin());
  for (size_t k = 0; k < position_code_.size(); ++k) {
    const double angle = static_cast<double>(behind_ + 1) * weights_->rates()[k];
    position_code_[k] = k % 2 == 1 ? std::sin(angle) : std::cos(angle);  // counted from 1: even k
  }
  const auto before = std::chrono::steady_clock::now();
  members_ = choice_.threads();
  team_.run(members_, [this](int member) { play(member); });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  choice_.took(took.count());
  return logits_.data();
}

// At a block's begin the buffers have moved, and states are others.
void StepLoop::look_at(const StepCaches& caches) {
  for (size_t i = 0; i < views_.size(); ++i) views_[i] = view_of(caches, i);
  const bool known = !std::exchange(caches_are_new_, false);
  if (rounded_ == nullptr || (known && rounded_->move())) return;
  for (size_t i = 0; i < views_.size(); ++i) {
    rounded_->fill(i, views_[i].keys, views_[i].values,
                   weights_->config().time.window + caches.phase);
  }
}

void StepLoop::play(int member) {
  const std::vector<StepLevel>& levels = weights_->levels();
  for (size_t i = 0; i < levels.size(); ++i) {
    const StepLevel& level = levels[i];
    if (!level.level_code.empty()) add_static_code(level, member);
    play_mixing(i, member);
    play_feed(level.feed, member);
    if (level.projection.feed != nullptr) play_feed(level.projection, member);
  }
  head(member);
}

std::pair<int64_t, int64_t> StepLoop::share(const kernels::PackedMatrix& w, int member) const {
  return {w.panels() * member / members_, w.panels() * (member + 1) / members_};
}

void StepLoop::multiply(const kernels::PackedMatrix& w, const float* x, float* y,
                        int member) const {
  const auto [first, last] = share(w, member);
  kernels::matvec(w, x, first, last, y);
}

void StepLoop::project(const kernels::PackedMatrix& w, const Row& input, const float* bias,
                       StepJoin join, int member) {
  const auto [first, last] = share(w, member);
  kernels::matvec(w, input.data(), first, last, y_.data());
  const int64_t end = std::min(last * kernels::kPanel, w.out);
  for (int64_t o = first * kernels::kPanel; o < end; ++o) {
    const auto i = static_cast<size_t>(o);
    const float y = bias != nullptr ? y_[i] + bias[i] : y_[i];
    x_[i] = join.identity * x_[i] + join.branch * y;
  }
}

void StepLoop::add_static_code(const StepLevel& level, int member) {
  const int64_t width = weights_->config().width;
  for (int64_t k = width * member / members_; k < width * (member + 1) / members_; ++k) {
    const auto i = static_cast<size_t>(k);
    x_[i] += static_cast<float>(position_code_[i] + level.level_code[i]);
  }
  team_.meet();
}

void StepLoop::attend_head(size_t number, int64_t head, Own& own) {
  const LanguageModelConfig& c = weights_->config();
  const StepLevel& level = weights_->levels()[number];
  const View& view = views_[number];
  const int64_t d = c.head_width;
  const int64_t at = head * d;
  float* q = q_.data() + at;
  float* k = k_.data() + at;
  float* v = v_.data() + at;
  if (level.signals[0].there() && !level.signals_before) {
    for (int64_t i = 0; i < d; ++i) {
      const auto s = static_cast<size_t>(at + i);
      q[i] += own.signals[0][s];
      k[i] += own.signals[1][s];
      v[i] += own.signals[2][s];
    }
  }
  if (c.time.normalise) {
    kernels::normalise_one(q, d, kHeadEpsilon);
    kernels::normalise_one(k, d, kHeadEpsilon);
  }
  const int64_t row = head * 2 * c.time.window;  // of the buffers
  const int64_t place = c.time.window + phase_;
  std::copy_n(k, d, view.keys + (row + place) * d);
  std::copy_n(v, d, view.values + (row + place) * d);
  if (rounded_ != nullptr) rounded_->put(number, head, place, k, v);
  attend_window(number, head, own);
}

void StepLoop::attend_window(size_t number, int64_t head, Own& own) {
  const LanguageModelConfig& c = weights_->config();
  const View& view = views_[number];
  const int64_t d = c.head_width;
  const int64_t seen = c.time.window + (c.time.attend_self ? 1 : 0);
  // Keys from before the document stand for nothing where they are masked.
  const int64_t hidden =
      c.time.mask_empty_cache ? std::max<int64_t>(0, c.time.window - behind_) : 0;
  const auto ask = [&](auto query) {
    query.q = q_.data() + head * d;
    query.count = seen - hidden;
    query.scale = weights_->levels()[number].mixing->scale[head];
    query.bias = view.bias + head * seen + hidden;
    kernels::attend_one(query, own.scores.data(), heads_.data() + head * d);
  };
  if (rounded_ != nullptr) {
    kernels::RoundedQuery query;
    query.head = rounded_->at(number, head);
    query.first = phase_ + hidden;
    return ask(query);
  }
  const int64_t first = (head * 2 * c.time.window + phase_ + hidden) * d;
  kernels::OneQuery query;
  query.keys = view.keys + first;
  query.values = view.values + first;
  query.stride = d;
  query.width = d;
  ask(query);
}

void StepLoop::attend_states(const StepLevel& level, const View& view, int64_t head, Own& own) {
  const LanguageModelConfig& c = weights_->config();
  const int64_t d = c.head_width;
  float* q = state_q_.data() + head * d;
  if (c.time.normalise) kernels::normalise_one(q, d, kHeadEpsilon);
  kernels::OneQuery query;
  query.q = q;
  query.keys = view.state_keys + head * view.state_head;
  query.values = view.state_values + head * view.state_head;
  query.stride = view.state_row;
  query.count = view.states;
  query.width = d;
  query.scale = level.mixing->state_scale[head];
  kernels::attend_one(query, own.scores.data(), heads_.data() + (c.heads + head) * d);
}

bool StepLoop::heads_are_own() const {
  const LanguageModelConfig& c = weights_->config();
  return c.heads % members_ == 0 && c.heads / members_ * c.head_width % kernels::kPanel == 0;
}

void StepLoop::play_mixing(size_t number, int member) {
  const LanguageModelConfig& c = weights_->config();
  const StepLevel& level = weights_->levels()[number];
  const StepMixing& m = *level.mixing;
  Own& own = own_[static_cast<size_t>(member)];
  kernels::norm_one(x_.data(), level.norm.weight, level.norm.bias, level.norm.epsilon, c.width,
                    own.u.data());
  const float* inputs[3] = {own.u.data(), own.u.data(), own.u.data()};
  for (size_t n = 0; n < 3 && level.signals[n].there(); ++n) {
    apply_signal(level.signals[n], x_.data(), own.low, own.signals[n]);
    if (!level.signals_before) continue;
    for (size_t i = 0; i < own.u.size(); ++i) own.inputs[n][i] = own.u[i] + own.signals[n][i];
    inputs[n] = own.inputs[n].data();
  }
  multiply(m.query, inputs[0], q_.data(), member);
  multiply(m.key, inputs[1], k_.data(), member);
  multiply(m.value, inputs[2], v_.data(), member);
  if (m.reads_states()) multiply(m.state_query, own.u.data(), state_q_.data(), member);
  if (!heads_are_own()) team_.meet();

  for (int64_t h = c.heads * member / members_; h < c.heads * (member + 1) / members_; ++h) {
    attend_head(number, h, own);
    if (m.reads_states()) attend_states(level, views_[number], h, own);
  }
  team_.meet();
  project(m.output, heads_, nullptr, level.join, member);
  team_.meet();
}

void StepLoop::play_feed(const StepFeedPlace& place, int member) {
  const StepFeed& f = *place.feed;
  Own& own = own_[static_cast<size_t>(member)];
  const float* from = x_.data();
  Row& signal = own.signals[0];
  if (place.signal.there()) {
    apply_signal(place.signal, x_.data(), own.low, signal);
    if (!place.inner_signal) {
      for (size_t i = 0; i < x_.size(); ++i) own.inputs[0][i] = x_[i] + signal[i];
      from = own.inputs[0].data();
    }
  }
  kernels::norm_one(from, place.norm.weight, place.norm.bias, place.norm.epsilon,
                    weights_->config().width, own.u.data());
  const auto [first, last] = share(f.up, member);
  kernels::matvec(f.up, own.u.data(), first, last, hidden_.data());
  const int64_t begin = first * kernels::kPanel;
  const int64_t end = std::min(last * kernels::kPanel, f.up.out);
  for (int64_t o = begin; o < end; ++o) {
    const auto i = static_cast<size_t>(o);
    if (f.up_bias != nullptr) hidden_[i] += f.up_bias[i];
    if (place.signal.there() && place.inner_signal) hidden_[i] += signal[i];
  }
  if (begin < end) {
    (f.gelu ? kernels::gelu_one : kernels::relu_one)(hidden_.data() + begin, end - begin);
  }
  team_.meet();
  project(f.down, hidden_, f.down_bias, place.join, member);
  team_.meet();
}

void StepLoop::head(int member) {
  const LanguageModelConfig& c = weights_->config();
  Own& own = own_[static_cast<size_t>(member)];
  const StepNorm& norm = weights_->norm();
  kernels::norm_one(x_.data(), norm.weight, norm.bias, norm.epsilon, c.width, own.u.data());
  const float root = std::sqrt(static_cast<float>(c.vocabulary));
  const auto [first, last] = share(weights_->head(), member);
  kernels::matvec(weights_->head(), own.u.data(), first, last, logits_.data());
  for (int64_t o = first * kernels::kPanel; o < last * kernels::kPanel; ++o) {
    logits_[static_cast<size_t>(o)] /= root;
  }
}

}  // namespace rondo
