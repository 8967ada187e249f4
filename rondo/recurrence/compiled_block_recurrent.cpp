// The recurrent cell for the states of many rows.
#include "rondo/recurrence/compiled_block_recurrent.h"

#include <algorithm>

#include "rondo/kernels/attention.h"
#include "rondo/recurrence/mixing.h"

namespace rondo {
namespace {

// Keeps the activations of a piece in the L2 cache while the weights are streamed.
constexpr int64_t kStatesTogether = 96;

}  // namespace

// ---- the cache of a row ----

void RecurrentCache::make_states(int64_t count, int64_t width) {
  state = at::empty({count, width});
  state_keys = at::empty({keys.size(1), count, keys.size(3)});
  state_values = at::empty_like(state_keys);
  show_heads();
}

RecurrentCache::RecurrentCache(const RecurrentCache& other)
    : WindowCache(other),
      state(other.state.clone()),
      state_keys(other.state_keys.clone()),
      state_values(other.state_values.clone()) {
  show_heads();
}

void RecurrentCache::show_heads() {
  heads_.keys = state_keys.data_ptr<float>();
  heads_.values = state_values.data_ptr<float>();
  heads_.count = state_keys.size(1);
  heads_.head_stride = state_keys.stride(0);
  heads_.stride = state_keys.stride(1);
}

std::unique_ptr<RowCache> RecurrentCache::clone() const {
  return std::unique_ptr<RowCache>(new RecurrentCache(*this));
}

int64_t RecurrentCache::bytes() const {
  return WindowCache::bytes() +
         static_cast<int64_t>(state.nbytes() + state_keys.nbytes() + state_values.nbytes());
}

// ---- opening and saving ----

CompiledBlockRecurrent::CompiledBlockRecurrent(const WindowWeights& weights, CompiledCell cell,
                                               Tensor initial)
    : CompiledWindow(weights),
      cell_(std::move(cell)),
      initial_(std::move(initial)),
      states_(initial_.size(0)),
      width_(initial_.size(1)) {}

std::unique_ptr<RowCache> CompiledBlockRecurrent::open(const State& state, int64_t level,
                                                       int64_t tokens_seen) const {
  const at::NoGradGuard no_grad;
  auto cache = new_cache<RecurrentCache>();
  fill(*cache, state, level, tokens_seen);
  cache->make_states(states_, width_);
  const Tensor carried = state.get(level_key(level, "state"));  // [1, S, D]
  cache->state.copy_(carried.defined() ? carried[0] : initial_);
  BlockScratch scratch;
  in_pieces({cache.get()}, scratch, kernels::Member(), [&](const Piece& piece) { read(piece); });
  return cache;
}

void CompiledBlockRecurrent::save(const RowCache& row, int64_t level, int64_t tokens_seen,
                                  State& state) const {
  const auto& cache = static_cast<const RecurrentCache&>(row);
  // All keys are kept: the cell reads two windows of them at the end of the block.
  const int64_t window = weights().window;
  save_keys(cache, level, tokens_seen, window + tokens_seen % window, state);
  state.set(level_key(level, "state"), cache.state.unsqueeze(0).clone());
}

// ---- the end of blocks ----

void CompiledBlockRecurrent::end_blocks(const std::vector<RowCache*>& rows, BlockScratch& scratch,
                                        const kernels::Member& member) const {
  in_pieces(rows, scratch, member, [&](const Piece& piece) { update(piece); });
  member.barrier();  // others may still attend to keys and values of states and tokens
  in_pieces(rows, scratch, member, [&](const Piece& piece) { read(piece); });
  CompiledWindow::end_blocks(rows, scratch, member);
}

template <class Work>
void CompiledBlockRecurrent::in_pieces(const std::vector<RowCache*>& rows, BlockScratch& scratch,
                                       const kernels::Member& member, const Work& work) const {
  const auto [begin, end] = member.share(static_cast<int64_t>(rows.size()) * states_);
  const int64_t all = end - begin;
  const int64_t pieces = (all + kStatesTogether - 1) / kStatesTogether;
  make_room(std::min(all, kStatesTogether), scratch);
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t first = all * i / pieces;
    work(Piece{rows, begin + first, all * (i + 1) / pieces - first, scratch});
  }
}

void CompiledBlockRecurrent::make_room(int64_t count, BlockScratch& scratch) const {
  const int64_t inner = cell_.maps.heads * cell_.maps.head_width;
  for (nn::RowBuffer* b : {&scratch.states, &scratch.u, &scratch.update}) b->resize(count, width_);
  scratch.heads.resize(count, inner);
  scratch.attended.resize(count, 2 * inner);
  scratch.hidden.resize(count, cell_.feed_forward.up.w.out);
  for (nn::RowBuffer* b : {&scratch.forget, &scratch.input}) b->resize(count, width_);
}

template <class Work>
void CompiledBlockRecurrent::by_row(const Piece& piece, const Work& work) const {
  for (int64_t at = 0; at < piece.count;) {
    const int64_t state = (piece.first + at) % states_;
    const int64_t number = std::min(states_ - state, piece.count - at);
    work(static_cast<RecurrentCache&>(
             *piece.rows[static_cast<size_t>((piece.first + at) / states_)]),
         state, at, number);
    at += number;
  }
}

nn::Rows CompiledBlockRecurrent::gather(const Piece& piece) const {
  const nn::Rows states = piece.scratch.states.rows(piece.count);
  by_row(piece, [&](const RecurrentCache& cache, int64_t state, int64_t at, int64_t number) {
    for (int64_t i = 0; i < number; ++i) {
      std::copy_n(cache.state.data_ptr<float>() + (state + i) * width_, width_, states[at + i]);
    }
  });
  return states;
}

nn::Rows CompiledBlockRecurrent::normalized(const Piece& piece, const nn::Rows& states) const {
  const nn::Rows u = piece.scratch.u.rows(piece.count);
  cell_.norm.forward(states, u);
  for (int64_t i = 0; cell_.identity != nullptr && i < piece.count; ++i) {
    const float* identity = cell_.identity + (piece.first + i) % states_ * width_;
    kernels::sum_one(u[i], 1.0F, identity, 1.0F, width_, u[i]);
  }
  return u;
}

nn::Rows CompiledBlockRecurrent::project(const nn::CompiledLinear& map, const nn::Rows& u,
                                         bool normalize, const Piece& piece) const {
  const nn::Rows rows = piece.scratch.heads.rows(piece.count);
  map.forward(u, rows, kernels::Member());
  const int64_t d = cell_.maps.head_width;
  for (int64_t i = 0; normalize && i < piece.count; ++i) {
    for (int64_t h = 0; h < cell_.maps.heads; ++h) {
      kernels::normalize_one(rows[i] + h * d, d, kUnitEpsilon);
    }
  }
  return rows;
}

nn::Rows CompiledBlockRecurrent::attended(const nn::Rows& u, const Piece& piece) const {
  const int64_t d = cell_.maps.head_width;
  const nn::Rows both = piece.scratch.attended.rows(piece.count);  // [states | tokens]
  const auto attend_to = [&](const nn::CompiledLinear& map, const float* scale, int64_t column,
                             const auto& keys_of) {
    const nn::Rows q = project(map, u, cell_.normalize, piece);
    by_row(piece, [&](const RecurrentCache& cache, int64_t /*state*/, int64_t at, int64_t number) {
      const StateHeads keys = keys_of(cache);
      kernels::AttentionProblem p;
      p.batch = 1;
      p.heads = cell_.maps.heads;
      p.queries = number;
      p.keys = keys.count;
      p.width = d;
      p.q = {q[at], {0, d, q.stride}};
      p.k = {keys.keys, {0, keys.head_stride, keys.stride}};
      p.v = {keys.values, {0, keys.head_stride, keys.stride}};
      p.factor = scale;
      const kernels::Sink out = {both[at] + column, {0, d, both.stride}};
      kernels::attention_forward(p, out, /*lse=*/nullptr, /*threads=*/1);
    });
  };
  attend_to(cell_.maps.query, cell_.scale, 0,
            [](const RecurrentCache& cache) { return *cache.states(); });
  const int64_t second = cell_.maps.heads * d;
  attend_to(cell_.token_query, cell_.token_scale, second, [&](const RecurrentCache& cache) {
    return StateHeads{cache.keys.data_ptr<float>(), cache.values.data_ptr<float>(),
                      cache.keys.size(2), cache.keys.stride(1), d};
  });
  return both;
}

void CompiledBlockRecurrent::update(const Piece& piece) const {
  const kernels::Member alone;
  BlockScratch& s = piece.scratch;
  const int64_t n = piece.count;
  const nn::Rows c = gather(piece);
  const nn::Rows found = attended(normalized(piece, c), piece);
  const nn::Rows z = s.update.rows(n);
  const auto gate = [&](const nn::CompiledLinear& map, const nn::Rows& h,
                        const nn::CompiledGate& how) {
    map.forward(h, z, alone);
    for (int64_t i = 0; cell_.tanh && i < n; ++i) kernels::tanh_one(z[i], width_);
    how.forward(c, z, h, s.forget.rows(n), s.input.rows(n));
  };
  if (cell_.attention_gate.there()) gate(cell_.maps.output, found, cell_.attention_gate);
  if (cell_.feed_forward_gate.there()) {
    nn::Rows input = found;
    if (cell_.attention_gate.there()) {
      input = s.u.rows(n);
      cell_.feed_forward_norm.forward(c, input);
    }
    const nn::Rows hidden = s.hidden.rows(n);
    cell_.feed_forward.hidden(input, {}, hidden, alone);
    gate(cell_.feed_forward.down, hidden, cell_.feed_forward_gate);
  }
  by_row(piece, [&](RecurrentCache& cache, int64_t state, int64_t at, int64_t number) {
    for (int64_t i = 0; i < number; ++i) {
      std::copy_n(c[at + i], width_, cache.state.data_ptr<float>() + (state + i) * width_);
    }
  });
}

void CompiledBlockRecurrent::read(const Piece& piece) const {
  const int64_t d = cell_.maps.head_width;
  const nn::Rows u = normalized(piece, gather(piece));
  const auto put = [&](const nn::Rows& rows, Tensor RecurrentCache::*to) {
    by_row(piece, [&](RecurrentCache& cache, int64_t state, int64_t at, int64_t number) {
      const Tensor& heads = cache.*to;  // [H, S, d]
      for (int64_t h = 0; h < heads.size(0); ++h) {
        float* first = heads.data_ptr<float>() + (h * states_ + state) * d;
        for (int64_t i = 0; i < number; ++i) std::copy_n(rows[at + i] + h * d, d, first + i * d);
      }
    });
  };
  put(project(cell_.maps.key, u, cell_.normalize, piece), &RecurrentCache::state_keys);
  put(project(cell_.maps.value, u, false, piece), &RecurrentCache::state_values);
}

}  // namespace rondo
