// Running one token of each row through all levels.
#include "rondo/recurrence/compiled_stack.h"

#include <algorithm>
#include <cmath>

#include "rondo/base/require.h"
#include "rondo/kernels/decode_attention.h"

namespace rondo {

RowPast RowPast::clone() const {
  RowPast copy;
  copy.tokens_seen = tokens_seen;
  for (const auto& level : levels) copy.levels.push_back(level->clone());
  copy.memories = memories;
  copy.plain = plain;
  return copy;
}

int64_t RowPast::bytes() const {
  int64_t total = 0;
  for (const auto& level : levels) total += level->bytes();
  return total;
}

void check_step(const StepRows& rows, const std::vector<int64_t>& tokens, int64_t levels,
                int64_t vocabulary) {
  require(!rows.empty() && rows.size() == tokens.size(),
          "step: expected one token for each of 1 or more rows, got {} tokens for {} rows",
          tokens.size(), rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    require(rows[r] != nullptr && static_cast<int64_t>(rows[r]->levels.size()) == levels,
            "step: row {}: expected a row opened by this model", r);
    require(tokens[r] >= 0 && tokens[r] < vocabulary,
            "step: row {}: expected a token from 0 to {}, got {}", r, vocabulary - 1, tokens[r]);
  }
}

RowPast CompiledStack::open(const State& state, int64_t tokens_seen) const {
  RowPast past;
  past.tokens_seen = tokens_seen;
  for (int64_t i = 0; i < size(); ++i) {
    past.levels.push_back(levels_[static_cast<size_t>(i)].mixing->open(state, i, tokens_seen));
  }
  return past;
}

void CompiledStack::save(const RowPast& past, State& state) const {
  for (size_t i = 0; i < levels_.size(); ++i) {
    levels_[i].mixing->save(*past.levels[i], static_cast<int64_t>(i), past.tokens_seen, state);
  }
}

// One member's view of a step.
struct CompiledStack::Step {
  const StepRows& rows;
  StepWorkspace& shared;
  StepWorkspace::Own& own;
  const kernels::Member& member;
  nn::Rows x;  // the stream: shared or the member's own

  int64_t count() const { return static_cast<int64_t>(rows.size()); }
};

nn::Rows CompiledStack::begin(const StepRows& rows, int members, StepWorkspace& w) const {
  const auto count = static_cast<int64_t>(rows.size());
  if (count > w.rows_ || members > w.members_) {
    w.rows_ = std::max(w.rows_, count);
    w.members_ = std::max(w.members_, members);
    for (nn::RowBuffer* buffer : {&w.stream_, &w.y_}) buffer->resize(w.rows_, width_);
    for (nn::RowBuffer* b : {&w.q_, &w.k_, &w.v_, &w.state_q_}) b->resize(w.rows_, inner_ + 1);
    w.heads_.resize(w.rows_, 2 * inner_);
    w.hidden_.resize(w.rows_, hidden_);
    const int64_t widest = std::max({width_, inner_, hidden_});
    w.own_.resize(static_cast<size_t>(w.members_));
    for (StepWorkspace::Own& own : w.own_) {
      own.x.resize(w.rows_, width_);
      own.u.resize(w.rows_, width_);
      own.low.resize(w.rows_, rank_);
      for (nn::RowBuffer& buffer : own.signals) buffer.resize(w.rows_, widest);
      for (nn::RowBuffer& buffer : own.inputs) buffer.resize(w.rows_, widest);
    }
  }
  if (static_signal_.there()) {
    w.position_parts_.resize(static_cast<size_t>(w.rows_ * width_));
    for (int64_t r = 0; r < count; ++r) {
      static_signal_.position_part(rows[static_cast<size_t>(r)]->tokens_seen,
                                   w.position_parts_.data() + r * width_);
    }
  }
  for (RowPast* row : rows) {
    for (size_t i = 0; i < levels_.size(); ++i) {
      levels_[i].mixing->begin_token(*row->levels[i], row->tokens_seen);
    }
  }
  return w.stream_.rows(count);
}

void CompiledStack::end(const StepRows& rows) const {
  for (RowPast* row : rows) ++row->tokens_seen;
}

nn::Rows CompiledStack::forward(const StepRows& rows, StepWorkspace& w,
                                const kernels::Member& member) const {
  Step step = {rows, w, w.own_[static_cast<size_t>(member.index)], member,
               w.stream_.rows(static_cast<int64_t>(rows.size()))};
  for (size_t i = 0; i < levels_.size(); ++i) {
    const CompiledLevel& level = levels_[i];
    if (level.static_signal > 0) add_static_signal(level, step);
    mix(level, i, step);
    if (level.cross != nullptr) read_memory(level, step);
    if (level.feed_forward != nullptr) feed(level, step);
    if (level.projection != nullptr) forward_projection(*level.projection, step);
  }
  end_blocks(step);
  return step.x;
}

// Runs after the last level: with feedback, all levels read the states of one.
void CompiledStack::end_blocks(Step& step) const {
  std::vector<RowCache*>& ended = step.own.blocks.rows;
  for (size_t i = 0; i < levels_.size(); ++i) {
    const CompiledMixing& mixing = *levels_[i].mixing;
    if (mixing.block() == 0) continue;
    ended.clear();
    for (RowPast* row : step.rows) {
      if ((row->tokens_seen + 1) % mixing.block() == 0) ended.push_back(row->levels[i].get());
    }
    if (!ended.empty()) mixing.end_blocks(ended, step.own.blocks, step.member);
  }
}

// A shared stream is divided among the members, which then synchronize; a member's own is not.
void CompiledStack::add_static_signal(const CompiledLevel& level, Step& step) const {
  const bool shared = step.x.data == step.shared.stream_.rows(1).data;
  const auto [first, last] = shared ? step.member.share(width_) : std::pair(int64_t{0}, width_);
  for (int64_t r = 0; r < step.count(); ++r) {
    const double* part = step.shared.position_parts_.data() + r * width_;
    static_signal_.add(level.static_signal, part, first, last, step.x[r]);
  }
  if (shared) step.member.barrier();
}

void CompiledStack::mix(const CompiledLevel& level, size_t number, Step& step) const {
  nn::Rows u = step.x;
  if (!post_norm_) {
    u = step.own.u.rows(step.count());
    level.mixing_norm.forward(step.x, u);
  }
  project(level, u, step);
  attend(*level.mixing, number, step);
  step.member.barrier();
  join(level.mixing->maps().output, step.shared.heads_.rows(step.count()), level.mixing_join,
       post_norm_ ? &level.mixing_norm : nullptr, step);
}

// Queries, keys and values, with the level's signals.
void CompiledStack::project(const CompiledLevel& level, const nn::Rows& u, Step& step) const {
  const nn::CompiledProjections& maps = *level.maps;
  const int64_t n = step.count();
  const nn::CompiledLinear* linears[3] = {&maps.query, &maps.key, &maps.value};
  const nn::Rows results[3] = {step.shared.q_.rows(n), step.shared.k_.rows(n),
                               step.shared.v_.rows(n)};
  for (size_t i = 0; i < 3; ++i) {
    if (!linears[i]->there()) continue;  // some mixings do not have all three
    const nn::CompiledLowRank* signal = nullptr;
    if (level.signals != nullptr) {
      const nn::CompiledLowRank* all[3] = {&level.signals->query, &level.signals->key,
                                           &level.signals->value};
      if (all[i]->there()) signal = all[i];
    }
    nn::Rows input = u;
    const nn::Rows g = step.own.signals[i].rows(n);
    if (signal != nullptr) signal->forward(step.x, step.own.low.rows(n), g);
    if (signal != nullptr && level.signals->place == SignalPlace::before) {
      input = step.own.inputs[i].rows(n);
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t k = 0; k < width_; ++k) input[r][k] = u[r][k] + g[r][k];
      }
    }
    linears[i]->forward(input, results[i], step.member);
    if (signal == nullptr || level.signals->place == SignalPlace::before) continue;
    const auto [first, last] = linears[i]->columns(step.member);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t k = first; k < last; ++k) results[i][r][k] += g[r][k];
    }
  }
  if (level.mixing->state_query().there()) {
    level.mixing->state_query().forward(u, step.shared.state_q_.rows(n), step.member);
  }
}

void CompiledStack::attend(const CompiledMixing& mixing, size_t number, Step& step) const {
  const nn::CompiledProjections& maps = mixing.maps();
  const int64_t d = maps.head_width;
  const int64_t n = step.count();
  const nn::Rows q = step.shared.q_.rows(n);
  const nn::Rows k = step.shared.k_.rows(n);
  const nn::Rows v = step.shared.v_.rows(n);
  const nn::Rows state_q = step.shared.state_q_.rows(n);
  const nn::Rows heads = step.shared.heads_.rows(n);
  const bool reads_states = mixing.state_query().there();
  // A member whose columns are whole heads needs no results of others.
  const std::pair<int64_t, int64_t> all_heads = {0, maps.heads};
  const bool own_heads =
      maps.heads % step.member.count == 0 &&
      maps.heads / step.member.count * d % maps.value.column_step(step.member.count) == 0;
  if (!own_heads) step.member.barrier();
  // Head by head: consecutive rows of a sentence share keys (faster; measured).
  const auto [first_head, last_head] = own_heads ? step.member.share(maps.heads) : all_heads;
  const int64_t heads_each = last_head - first_head;
  const auto [first, last] =
      own_heads ? std::pair(int64_t{0}, n * heads_each) : step.member.share(n * heads_each);
  for (int64_t piece = first; piece < last; ++piece) {
    const int64_t h = first_head + piece / n;
    const int64_t r = piece % n;
    RowPast& past = *step.rows[static_cast<size_t>(r)];
    HeadStep one;
    one.head = h;
    one.tokens_seen = past.tokens_seen;
    one.q = q[r] + h * d;
    one.k = k[r] + h * d;
    one.v = v[r] + h * d;
    one.out = heads[r] + h * d;
    one.scratch = &step.own.scratch;
    if (reads_states) {
      one.state_q = state_q[r] + h * d;
      one.state_out = heads[r] + (maps.heads + h) * d;
      one.states = past.levels[number]->states();
      if (one.states == nullptr) {
        one.states = past.levels[static_cast<size_t>(feedback_level_)]->states();
      }
    }
    mixing.attend(one, *past.levels[number]);
  }
}

void CompiledStack::read_memory(const CompiledLevel& level, Step& step) const {
  nn::Rows u = step.x;
  if (!post_norm_) {
    u = step.own.u.rows(step.count());
    level.cross_norm.forward(step.x, u);
  }
  level.cross->query.forward(u, step.shared.q_.rows(step.count()), step.member);
  step.member.barrier();
  attend_memory(level, step);
  step.member.barrier();
  join(level.cross->output, step.shared.heads_.rows(step.count()), level.cross_join,
       post_norm_ ? &level.cross_norm : nullptr, step);
}

void CompiledStack::attend_memory(const CompiledLevel& level, Step& step) const {
  const int64_t d = level.cross->head_width;
  const int64_t heads = level.cross->heads;
  const nn::Rows q = step.shared.q_.rows(step.count());
  const nn::Rows out = step.shared.heads_.rows(step.count());
  // Head by head: consecutive rows of a sentence read the same keys.
  const auto [first, last] = step.member.share(heads * step.count());
  for (int64_t piece = first; piece < last; ++piece) {
    const int64_t h = piece / step.count();
    const int64_t r = piece % step.count();
    const StateHeads& memory = step.rows[static_cast<size_t>(r)]->memories[level.memory]->heads;
    kernels::OneQuery query;
    query.q = q[r] + h * d;
    query.keys = memory.keys + h * memory.head_stride;
    query.values = memory.values + h * memory.head_stride;
    query.stride = memory.stride;
    query.count = memory.count;
    query.width = d;
    query.scale = 1.0F / std::sqrt(static_cast<float>(d));
    kernels::attend_one(query, with_room(step.own.scratch, memory.count), out[r] + h * d);
  }
}

void CompiledStack::join(const nn::CompiledLinear& w, const nn::Rows& input, CompiledJoin how,
                         const nn::CompiledNorm* norm_after, Step& step) const {
  const int64_t n = step.count();
  const nn::Rows y = step.shared.y_.rows(n);
  const nn::Rows stream = step.shared.stream_.rows(n);
  w.forward(input, y, step.member);
  const auto [first, last] = w.columns(step.member);
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t o = first; o < last; ++o) {
      stream[r][o] = how.identity * step.x[r][o] + how.branch * y[r][o];
    }
  }
  step.member.barrier();
  step.x = stream;
  if (norm_after == nullptr) return;
  step.x = step.own.x.rows(n);
  norm_after->forward(stream, step.x);
}

void CompiledStack::feed(const CompiledLevel& level, Step& step) const {
  const int64_t n = step.count();
  nn::Rows from = step.x;
  nn::Rows inner;
  if (level.signals != nullptr && level.signals->feed_forward.there()) {
    const nn::Rows g = step.own.signals[0].rows(n);
    level.signals->feed_forward.forward(step.x, step.own.low.rows(n), g);
    if (level.signals->inner_feed_forward) {
      inner = g;
    } else {
      from = step.own.inputs[0].rows(n);
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t k = 0; k < width_; ++k) from[r][k] = step.x[r][k] + g[r][k];
      }
    }
  }
  nn::Rows u = from;
  if (!post_norm_) {
    u = step.own.u.rows(n);
    level.feed_forward_norm.forward(from, u);
  }
  const nn::Rows hidden = step.shared.hidden_.rows(n);
  level.feed_forward->hidden(u, inner, hidden, step.member);
  step.member.barrier();
  join(level.feed_forward->down, hidden, level.feed_forward_join,
       post_norm_ ? &level.feed_forward_norm : nullptr, step);
}

void CompiledStack::forward_projection(const CompiledLoopProjection& projection, Step& step) const {
  const int64_t n = step.count();
  const nn::Rows u = step.own.u.rows(n);
  projection.norm.forward(step.x, u);
  const nn::Rows hidden = step.shared.hidden_.rows(n);
  projection.feed_forward.hidden(u, {}, hidden, step.member);
  step.member.barrier();
  join(projection.feed_forward.down, hidden, projection.join, nullptr, step);
}

}  // namespace rondo
