// Running whole sequences through all levels.
#include "rondo/recurrence/compiled_sequence.h"

#include <algorithm>

namespace rondo {
namespace {

constexpr int64_t kTokensTogether = 96;

void meet(const kernels::Member& member) {
  if (member.count > 1) member.barrier();
}

// work(first, count) for `range` in almost equal pieces of a few tokens each.
template <class Work>
void in_pieces(std::pair<int64_t, int64_t> range, const Work& work) {
  const int64_t all = range.second - range.first;
  const int64_t pieces = (all + kTokensTogether - 1) / kTokensTogether;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t first = all * i / pieces;
    work(range.first + first, all * (i + 1) / pieces - first);
  }
}

void join_rows(const nn::Rows& x, const nn::Rows& y, int64_t width, CompiledJoin how,
               const nn::Rows& to) {
  for (int64_t r = 0; r < x.count; ++r) {
    kernels::sum_one(x[r], how.identity, y[r], how.branch, width, to[r]);
  }
}

// Rows [first, first + count), where row i of a sequence is taken from its row order[i].
nn::Rows gather(const nn::Rows& all, const std::vector<int64_t>& order, int64_t first,
                int64_t count, int64_t width, nn::RowBuffer& to) {
  const auto tokens = static_cast<int64_t>(order.size());
  const nn::Rows rows = to.rows(count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = first + i;
    const int64_t from = row / tokens * tokens + order[static_cast<size_t>(row % tokens)];
    std::copy_n(all[from], width, rows[i]);
  }
  return rows;
}

}  // namespace

TokenOrder::TokenOrder(const Tensor& permutation) {
  const int64_t* data = permutation.data_ptr<int64_t>();
  tokens.assign(data, data + permutation.numel());
  places.resize(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    places[static_cast<size_t>(tokens[i])] = static_cast<int64_t>(i);
  }
}

// One member's view of a pass.
struct CompiledSequenceStack::Pass {
  const SequenceShape& shape;
  SequenceWorkspace& shared;
  SequenceScratch& own;
  const kernels::Member& member;
  kernels::Member alone = {};

  nn::Rows stream() const { return shared.stream_.rows(shape.rows()); }
  nn::Rows out() const { return shared.out_.rows(shape.rows()); }
};

void CompiledSequenceStack::draw_orders(Permutations& permutations, int64_t tokens,
                                        std::vector<TokenOrder>& orders) const {
  for (const CompiledLevel& level : levels_) {
    if (level.sequence->slice(level.loop, level.groups).permute) {
      orders.emplace_back(permutations.next(tokens));
    }
  }
}

nn::Rows CompiledSequenceStack::begin(const SequenceShape& shape, int members,
                                      SequenceWorkspace& w) const {
  const int64_t rows = shape.rows();
  w.stream_.resize(rows, width_);
  for (nn::RowBuffer* buffer : {&w.q_, &w.k_, &w.v_, &w.out_}) buffer->resize(rows, inner_);
  if (static_signal_.there()) {
    w.position_parts_.resize(static_cast<size_t>(shape.tokens * width_));
  }
  const int64_t together = std::min(kTokensTogether, rows);
  if (w.own_.size() < static_cast<size_t>(members)) w.own_.resize(static_cast<size_t>(members));
  for (SequenceScratch& own : w.own_) {
    const int64_t widest = std::max({width_, inner_, hidden_});
    own.x.resize(together, std::max(width_, inner_));
    own.u.resize(together, width_);
    own.y.resize(together, width_);
    own.hidden.resize(together, hidden_);
    own.low.resize(together, rank_);
    if (!signals_.empty()) own.signal.resize(together, widest);
  }
  return w.stream_.rows(rows);
}

nn::Rows CompiledSequenceStack::forward(const SequenceShape& shape, const TokenOrder* orders,
                                        SequenceWorkspace& w, const kernels::Member& member) const {
  const Pass pass = {shape, w, w.own_[static_cast<size_t>(member.index)], member};
  const int64_t rows = shape.rows();
  if (static_signal_.there()) {
    const auto [first, last] = member.share(shape.tokens);
    for (int64_t t = first; t < last; ++t) {
      static_signal_.position_part(t, w.position_parts_.data() + t * width_);
    }
    meet(member);
  }
  for (const CompiledLevel& level : levels_) {
    const SlicePlan slice = level.sequence->slice(level.loop, level.groups);
    const TokenOrder* order = slice.permute ? orders++ : nullptr;
    if (level.static_signal > 0) add_static_signal(level, pass);
    if (order != nullptr) meet(member);  // project() reads tokens of other members
    in_pieces(member.share(rows),
              [&](int64_t first, int64_t count) { project(level, order, first, count, pass); });
    meet(member);
    SequenceMixing::Input in = {shape,           level.groups,    w.q_.rows(rows),
                                w.k_.rows(rows), w.v_.rows(rows), w.out_.rows(rows),
                                &pass.own};
    level.sequence->mix(in, member);
    meet(member);
    in_pieces(member.share(rows), [&](int64_t first, int64_t count) {
      finish(level, slice.invert ? order : nullptr, first, count, pass);
    });
  }
  meet(member);
  return pass.stream();
}

void CompiledSequenceStack::add_static_signal(const CompiledLevel& level, const Pass& pass) const {
  const auto [first, last] = pass.member.share(pass.shape.rows());
  for (int64_t r = first; r < last; ++r) {
    const double* part = pass.shared.position_parts_.data() + r % pass.shape.tokens * width_;
    static_signal_.add(level.static_signal, part, 0, width_, pass.stream()[r]);
  }
}

void CompiledSequenceStack::project(const CompiledLevel& level, const TokenOrder* order,
                                    int64_t first, int64_t count, const Pass& pass) const {
  SequenceScratch& own = pass.own;
  const nn::Rows x = order != nullptr
                         ? gather(pass.stream(), order->tokens, first, count, width_, own.x)
                         : pass.stream().part(first, count);
  nn::Rows u = x;
  if (!post_norm_) {
    u = own.u.rows(count);
    level.mixing_norm.forward(x, u);
  }
  const int64_t rows = pass.shape.rows();
  const nn::Rows q = pass.shared.q_.rows(rows).part(first, count);
  if (level.maps == nullptr) {
    for (int64_t r = 0; r < count; ++r) std::copy_n(u[r], width_, q[r]);
    return;
  }
  const nn::CompiledLinear* maps[3] = {&level.maps->query, &level.maps->key, &level.maps->value};
  const nn::Rows to[3] = {q, pass.shared.k_.rows(rows).part(first, count),
                          pass.shared.v_.rows(rows).part(first, count)};
  for (size_t i = 0; i < 3; ++i) {
    const nn::CompiledLowRank* signal = nullptr;
    if (level.signals != nullptr) {
      const nn::CompiledLowRank* all[3] = {&level.signals->query, &level.signals->key,
                                           &level.signals->value};
      if (all[i]->there()) signal = all[i];
    }
    if (signal == nullptr) {
      maps[i]->forward(u, to[i], pass.alone);
      continue;
    }
    const nn::Rows g = own.signal.rows(count);
    signal->forward(x, own.low.rows(count), g);
    if (level.signals->place == SignalPlace::before) {
      join_rows(u, g, width_, {}, g);
      maps[i]->forward(g, to[i], pass.alone);
    } else {
      maps[i]->forward(u, to[i], pass.alone);
      join_rows(to[i], g, maps[i]->w.out, {}, to[i]);
    }
  }
}

void CompiledSequenceStack::finish(const CompiledLevel& level, const TokenOrder* order,
                                   int64_t first, int64_t count, const Pass& pass) const {
  SequenceScratch& own = pass.own;
  const nn::Rows x = pass.stream().part(first, count);
  const int64_t width = level.maps != nullptr ? level.maps->output.w.in : width_;
  const nn::Rows out = order != nullptr
                           ? gather(pass.out(), order->places, first, count, width, own.x)
                           : pass.out().part(first, count);
  if (level.maps != nullptr) {
    join(level.maps->output, out, level.mixing_join, level.mixing_norm, x, pass);
  } else {
    join_rows(x, out, width_, level.mixing_join, x);
    if (post_norm_) level.mixing_norm.forward(x, x);
  }
  if (level.feed_forward != nullptr) feed(level, x, pass);
  if (level.projection == nullptr) return;
  const nn::Rows u = own.u.rows(count);
  const nn::Rows hidden = own.hidden.rows(count);
  level.projection->norm.forward(x, u);
  level.projection->feed_forward.hidden(u, {}, hidden, pass.alone);
  level.projection->feed_forward.down.forward(hidden, own.y.rows(count), pass.alone);
  join_rows(x, own.y.rows(count), width_, level.projection->join, x);
}

void CompiledSequenceStack::feed(const CompiledLevel& level, const nn::Rows& x,
                                 const Pass& pass) const {
  SequenceScratch& own = pass.own;
  nn::Rows from = x;
  nn::Rows inner;
  if (level.signals != nullptr && level.signals->feed_forward.there()) {
    const nn::Rows g = own.signal.rows(x.count);
    level.signals->feed_forward.forward(x, own.low.rows(x.count), g);
    if (level.signals->inner_feed_forward) {
      inner = g;
    } else {
      join_rows(x, g, width_, {}, g);
      from = g;
    }
  }
  nn::Rows u = from;
  if (!post_norm_) {
    u = own.u.rows(x.count);
    level.feed_forward_norm.forward(from, u);
  }
  const nn::Rows hidden = own.hidden.rows(x.count);
  level.feed_forward->hidden(u, inner, hidden, pass.alone);
  join(level.feed_forward->down, hidden, level.feed_forward_join, level.feed_forward_norm, x, pass);
}

void CompiledSequenceStack::join(const nn::CompiledLinear& w, const nn::Rows& input,
                                 CompiledJoin how, const nn::CompiledNorm& norm, const nn::Rows& x,
                                 const Pass& pass) const {
  const nn::Rows y = pass.own.y.rows(x.count);
  w.forward(input, y, pass.alone);
  join_rows(x, y, width_, how, x);
  if (post_norm_) norm.forward(x, x);
}

}  // namespace rondo
