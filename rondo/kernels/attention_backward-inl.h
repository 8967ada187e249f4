// Gradients of attention for one head, for one target. Included once per target.
//
// Probabilities are recomputed from the queries, the keys and each query's log Σ exp. With p the
// probabilities, g the gradient of the output and m = Σ p·∂p = g · output (per query):
//   ∂v = pᵀ·g     ∂p = g·vᵀ     ∂s = p·(∂p - m)     ∂q = factor·∂s·k     ∂k = factor·∂sᵀ·q
// and ∂factor = Σ ∂s·(q·kᵀ) = Σ q·(∂s·k), so no product needs to be kept for it. The code computes
// ∂kᵀ and ∂vᵀ, because p and ∂s are then right operands, which are cheaper to pack.
#if defined(RONDO_KERNELS_ATTENTION_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_ATTENTION_BACKWARD_INL_H_
#undef RONDO_KERNELS_ATTENTION_BACKWARD_INL_H_
#else
#define RONDO_KERNELS_ATTENTION_BACKWARD_INL_H_
#endif

#include "rondo/kernels/attention_softmax-inl.h"

RONDO_BEFORE_KERNELS();
namespace rondo::kernels::HWY_NAMESPACE {

// Scratch memory of the backward pass over `count` queries.
struct BackwardBuffers {
  float* scores = nullptr;            // [kTile, kTile], then probabilities
  float* changes = nullptr;           // gradients of probabilities, then of scores
  float* change_rows = nullptr;       // score gradients as a left operand, over keys
  float* score_pairs = nullptr;       // probabilities as a right operand, over queries
  float* change_pairs = nullptr;      // score gradients likewise
  float* copies = nullptr;            // [kTile, left step]
  float* keys = nullptr;              // [units of d, kTile]
  float* values = nullptr;            // [units of d, kTile]
  float* key_rows = nullptr;          // [units of kTile, padded d]
  float* queries = nullptr;           // [count, left step]
  float* gradients = nullptr;         // [count, left step], of the output
  float* query_columns = nullptr;     // [padded d, units of count]; fp32: rows, transposed on use
  float* gradient_columns = nullptr;  // [padded d, units of count]
  float* pairs = nullptr;             // [units of kTile, padded d], temporary for the transpose
  float* query_gradient = nullptr;    // [count, padded d]
  float* key_gradient = nullptr;      // [padded d, kTile]
  float* value_gradient = nullptr;    // [padded d, kTile]
  float* turned = nullptr;            // [kTile, padded d]
  float* lse = nullptr;               // [count], base 2
  float* means = nullptr;             // [count]

  template <class Math>
  void lay_out(Carver& carver, int64_t count, int64_t width, int64_t column_step) {
    const int64_t size = padded(width);
    const int64_t step = left_step<Math>(width);
    const int64_t rows = round_up(count, Math::kRowStep);
    const bool paired = Math::kPerUnit == 2;
    scores = carver.take(kTile * kTile);
    changes = carver.take(kTile * kTile);
    change_rows = paired ? carver.take(kTile * kTile / 2) : changes;
    score_pairs = paired ? carver.take(kTile * kTile / 2) : scores;
    change_pairs = paired ? carver.take(kTile * kTile / 2) : changes;
    copies = carver.take(kTile * step);
    keys = carver.take(units<Math>(width) * kTile);
    values = carver.take(units<Math>(width) * kTile);
    key_rows = carver.take(units<Math>(kTile) * size);
    queries = carver.take(rows * step);
    gradients = carver.take(rows * step);
    query_columns = paired ? carver.take(size * column_step) : queries;
    gradient_columns = paired ? carver.take(size * column_step) : gradients;
    pairs = carver.take(paired ? kTile / 2 * size : 0);
    query_gradient = carver.take(rows * size);
    key_gradient = carver.take(size * kTile);
    value_gradient = carver.take(size * kTile);
    turned = carver.take(kTile * size);
    lse = carver.take(count);
    means = carver.take(count);
  }
};

// Writes dq = factor · sums, and Σ q·sums.
template <class T>
void write_query_gradient(const AttentionProblem& problem, const AttentionGradients& gradients,
                          int64_t b, int64_t h, const float* sums, double* factor_share) {
  const int64_t size = padded(problem.width);
  double total = 0.0;
  for (int64_t i = 0; i < problem.queries; ++i) {
    write_row(sums + i * size, problem.factor[h], problem.width, row_of<T>(gradients.q, b, h, i));
    if (factor_share != nullptr) {
      total += dot_row(row_of<T>(problem.q, b, h, i), sums + i * size, problem.width);
    }
  }
  if (factor_share != nullptr) *factor_share = total;
}

template <class Math, class T>
struct BackwardPass {
  static constexpr bool kPaired = Math::kPerUnit == 2;

  const BackwardWork& work;
  const AttentionProblem& problem;
  int64_t size;         // padded d
  int64_t step;         // of left operands over d
  int64_t column_step;  // of left operands over queries
  BackwardBuffers to;

  explicit BackwardPass(const BackwardWork& w)
      : work(w),
        problem(*w.problem),
        size(padded(w.problem->width)),
        step(left_step<Math>(w.problem->width)),
        // + 16: rows a power of two apart would compete for the same cache sets
        column_step(kPaired ? tiles_in(w.problem->queries) * kTile / 2 + 16 : step) {}

  // Prepares what all key tiles share.
  void begin() {
    const AttentionResult& result = *work.result;
    const int64_t count = problem.queries;
    const T* g = row_of<T>(result.gradient, work.b, work.h, 0);
    const int64_t g_step = result.gradient.strides.row;
    pack_queries(row_of<T>(problem.q, work.b, work.h, 0), problem.q.strides.row, to.queries,
                 to.query_columns);
    pack_queries(g, g_step, to.gradients, to.gradient_columns);
    const float* lse = result.lse + (work.b * problem.heads + work.h) * count;
    for (int64_t i = 0; i < count; ++i) {
      to.lse[i] = lse[i] * kLog2E;
      to.means[i] =
          dot_row(g + i * g_step, row_of<T>(result.out, work.b, work.h, i), problem.width);
    }
    std::fill(to.query_gradient, to.query_gradient + count * size, 0.0F);
  }

  void pack_queries(const T* from, int64_t from_step, float* rows,
                    [[maybe_unused]] float* columns) {
    pack_left<Math>(from, from_step, problem.queries, problem.width, rows);
    if constexpr (kPaired) {
      for (int64_t i = 0; i < problem.queries; i += kTile) {
        const int64_t count = std::min(kTile, problem.queries - i);
        pack_right<Math>(from + i * from_step, from_step, count, problem.width, to.pairs);
        turn({to.pairs, size}, units<Math>(count), size, columns + i / 2, column_step, 0);
      }
    }
  }

  void pack(const Tile& tile) {
    const int64_t width = problem.width;
    const T* k = row_of<T>(problem.k, work.b, work.h, tile.first_key);
    const T* v = row_of<T>(problem.v, work.b, work.h, tile.first_key);
    pack_left<Math>(k, problem.k.strides.row, tile.keys, width, to.copies);
    turn({to.copies, step}, tile.keys, units<Math>(width), to.keys, kTile, tile.columns);
    pack_left<Math>(v, problem.v.strides.row, tile.keys, width, to.copies);
    turn({to.copies, step}, tile.keys, units<Math>(width), to.values, kTile, tile.columns);
    pack_right<Math>(k, problem.k.strides.row, tile.keys, width, to.key_rows);
  }

  // Where a query's score gradients are accumulated for the bias; null if not requested.
  float* bias_row(const Tile& tile, int64_t row) const {
    if (work.bias_sum == nullptr) return nullptr;
    return work.bias_sum + (tile.first_query + row) * problem.keys + tile.first_key;
  }

  RowTotals totals(const Tile& tile, int64_t row) const {
    if (row >= tile.queries) return {kInfinity, 0.0F};  // as if it saw no key
    return {to.lse[tile.first_query + row], to.means[tile.first_query + row]};
  }

  // Probabilities and score gradients of a tile, in every layout that the products need.
  void differentiate(const Tile& tile) {
    const float factor = settle_scores(tile, to.scores);
    DropRow drops[2] = {tile.dropping(), tile.dropping()};
    // Sums run over whole steps of queries; nonexistent ones contribute 0.
    const int64_t rows = Math::kPerUnit * units<Math>(tile.queries);
    const int64_t missing = rows - tile.queries;
    std::fill_n(to.scores + tile.queries * kTile, missing * kTile, 0.0F);
    std::fill_n(to.changes + tile.queries * kTile, missing * kTile, 0.0F);
    for (int64_t i = 0; i < rows; i += Math::kPerUnit) {
      if (problem.dropout > 0.0) {
        drops[0].move_to(tile.place(i), problem.seed);
        if (kPaired) drops[1].move_to(tile.place(i + 1), problem.seed);
      }
      differentiate_rows(Math(), tile, i, factor, drops);
    }
  }

  void differentiate_rows(Fp32Math /*math*/, const Tile& tile, int64_t i, float factor,
                          const DropRow* drops) {
    constexpr Floats d;
    const DropRow* drop = problem.dropout > 0.0 ? drops : nullptr;
    const RowTotals row = totals(tile, i);
    float* bias = bias_row(tile, i);
    for (int64_t j = 0; j < tile.columns; j += kLanes) {
      auto score = hn::Load(d, to.scores + i * kTile + j);
      auto change = hn::Load(d, to.changes + i * kTile + j);
      softmax_gradient(score, change, factor, drop, j, row);
      hn::Store(score, d, to.scores + i * kTile + j);
      hn::Store(change, d, to.changes + i * kTile + j);
      if (bias != nullptr) add_some(change, bias + j, tile.keys - j);
    }
  }

#if RONDO_HAVE_BF16
  // Two queries at a time; the second may not exist.
  template <class Paired>
  void differentiate_rows(Paired /*math*/, const Tile& tile, int64_t i, float factor,
                          const DropRow* drops) {
    constexpr Floats d;
    const bool dropping = problem.dropout > 0.0;
    for (int64_t j = 0; j < tile.columns; j += 2 * kLanes) {
      FloatVector scores[2][2];
      FloatVector changes[2][2];
      for (int64_t r = 0; r < 2; ++r) {
        const RowTotals row = totals(tile, i + r);
        for (int64_t v = 0; v < 2; ++v) {
          const int64_t at = (i + r) * kTile + j + v * kLanes;
          scores[r][v] = hn::Load(d, to.scores + at);
          changes[r][v] = hn::Load(d, to.changes + at);
          softmax_gradient(scores[r][v], changes[r][v], factor, dropping ? drops + r : nullptr,
                           j + v * kLanes, row);
        }
        store_left(Paired(), changes[r], to.change_rows + ((i + r) * kTile + j) / 2);
        if (work.bias_sum == nullptr || i + r >= tile.queries) continue;
        float* bias = bias_row(tile, i + r) + j;
        add_some(changes[r][0], bias, tile.keys - j);
        add_some(changes[r][1], bias + kLanes, tile.keys - j - kLanes);
      }
      for (int64_t v = 0; v < 2; ++v) {
        const int64_t at = i / 2 * kTile + j + v * kLanes;
        store_right(scores[0][v], scores[1][v], to.score_pairs + at);
        store_right(changes[0][v], changes[1][v], to.change_pairs + at);
      }
    }
  }
#endif

  // `begun`: accumulate into the gradients of these keys and values.
  void attend(const Tile& tile, bool begun) {
    const int64_t first = tile.first_query;
    const int64_t rows = tile.queries;
    const int64_t width_units = units<Math>(problem.width);
    product<Math, false>({to.queries + first * step, step}, {to.keys, kTile}, rows, tile.columns,
                         width_units, {to.scores, kTile, false});
    product<Math, false>({to.gradients + first * step, step}, {to.values, kTile}, rows,
                         tile.columns, width_units, {to.changes, kTile, false});
    differentiate(tile);
    const int64_t at = kPaired ? first / 2 : first * step;
    product<Math, !kPaired>({to.gradient_columns + at, column_step}, {to.score_pairs, kTile},
                            problem.width, tile.columns, units<Math>(rows),
                            {to.value_gradient, kTile, begun});
    product<Math, !kPaired>({to.query_columns + at, column_step}, {to.change_pairs, kTile},
                            problem.width, tile.columns, units<Math>(rows),
                            {to.key_gradient, kTile, begun});
    product<Math, false>({to.change_rows, kTile / Math::kPerUnit}, {to.key_rows, size}, rows,
                         round_up(problem.width, kLanes), units<Math>(tile.keys),
                         {to.query_gradient + first * size, size, true});
  }

  // Transposes and writes the gradients of a tile's keys or values.
  void write(const Tile& tile, const float* columns, float factor, const Sink& sink) {
    turn({columns, kTile}, problem.width, tile.keys, to.turned, size, 0);
    for (int64_t j = 0; j < tile.keys; ++j) {
      write_row(to.turned + j * size, factor, problem.width,
                row_of<T>(sink, work.b, work.h, tile.first_key + j));
    }
  }

  void key_tile(int64_t k) {
    Tile tile;
    tile.problem = &problem;
    tile.b = work.b;
    tile.h = work.h;
    tile.first_key = k * kTile;
    tile.keys = std::min(kTile, problem.keys - tile.first_key);
    tile.columns = round_up(tile.keys, Math::kColumnStep);
    bool begun = false;
    for (int64_t q = 0; q < tiles_in(problem.queries); ++q) {
      const View view = work.views->at(work.b, q, k);
      if (view == View::hidden) continue;
      if (!begun) pack(tile);
      tile.first_query = q * kTile;
      tile.queries = std::min(kTile, problem.queries - tile.first_query);
      tile.mixed = view == View::mixed;
      attend(tile, begun);
      begun = true;
    }
    if (!begun) {  // no query sees these keys
      std::fill_n(to.key_gradient, problem.width * kTile, 0.0F);
      std::fill_n(to.value_gradient, problem.width * kTile, 0.0F);
    }
    write(tile, to.key_gradient, problem.factor[work.h], work.gradients->k);
    write(tile, to.value_gradient, 1.0F, work.gradients->v);
  }
};

template <class Math, class T>
void backward(const BackwardWork& work) {
  BackwardPass<Math, T> pass(work);
  const AttentionProblem& problem = *work.problem;
  Carver count;
  pass.to.template lay_out<Math>(count, problem.queries, problem.width, pass.column_step);
  const Scratch scratch(count.taken());
  Carver carver(scratch.memory());
  pass.to.template lay_out<Math>(carver, problem.queries, problem.width, pass.column_step);
  [[maybe_unused]] const Ready<Math> ready;
  pass.begin();
  for (int64_t k = 0; k < tiles_in(problem.keys); ++k) pass.key_tile(k);
  write_query_gradient<T>(problem, *work.gradients, work.b, work.h, pass.to.query_gradient,
                          work.factor_share);
}

}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // RONDO_KERNELS_ATTENTION_BACKWARD_INL_H_
