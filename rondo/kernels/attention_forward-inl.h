// Forward pass of attention for some queries of one head, for one target. Included once per target.
//
// Key tiles are the outer loop: each is packed once for all query tiles of the work item, and a
// query's running state (sum of weighted values, largest score, sum of exponentials) is rescaled
// when a larger score appears.
#if defined(RONDO_KERNELS_ATTENTION_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_ATTENTION_FORWARD_INL_H_
#undef RONDO_KERNELS_ATTENTION_FORWARD_INL_H_
#else
#define RONDO_KERNELS_ATTENTION_FORWARD_INL_H_
#endif

#include "rondo/kernels/attention_softmax-inl.h"

RONDO_BEFORE_KERNELS();
namespace rondo::kernels::HWY_NAMESPACE {

// Scratch memory of the forward pass over `count` queries.
struct ForwardBuffers {
  float* scores = nullptr;   // [kTile, kTile]
  float* weights = nullptr;  // the same as the left operand of a product
  float* queries = nullptr;  // [count, left step]
  float* copies = nullptr;   // [kTile, left step], of keys
  float* keys = nullptr;     // [units of d, kTile]
  float* values = nullptr;   // [units of kTile, padded d]
  float* sums = nullptr;     // [count, padded d]
  float* largest = nullptr;  // [count]
  float* totals = nullptr;   // [count]

  template <class Math>
  void lay_out(Carver& carver, int64_t count, int64_t width) {
    const int64_t rows = round_up(count, Math::kRowStep);
    scores = carver.take(kTile * kTile);
    weights = Math::kPerUnit == 1 ? scores : carver.take(kTile * kTile / 2);
    queries = carver.take(rows * left_step<Math>(width));
    copies = carver.take(kTile * left_step<Math>(width));
    keys = carver.take(units<Math>(width) * kTile);
    values = carver.take(units<Math>(kTile) * padded(width));
    sums = carver.take(rows * padded(width));
    largest = carver.take(count);
    totals = carver.take(count);
  }
};

template <class Math, class T>
struct ForwardPass {
  const ForwardWork& work;
  const AttentionProblem& problem;
  int64_t first_query;
  int64_t queries;
  int64_t size;  // padded d
  int64_t step;  // of left operands
  ForwardBuffers to;

  explicit ForwardPass(const ForwardWork& w)
      : work(w),
        problem(*w.problem),
        first_query(w.first * kTile),
        queries(std::min(w.last * kTile, w.problem->queries) - w.first * kTile),
        size(padded(w.problem->width)),
        step(left_step<Math>(w.problem->width)) {}

  void begin() {
    std::fill(to.sums, to.sums + queries * size, 0.0F);
    std::fill(to.largest, to.largest + queries, kNothingSeen);
    std::fill(to.totals, to.totals + queries, 0.0F);
    pack_left<Math>(row_of<T>(problem.q, work.b, work.h, first_query), problem.q.strides.row,
                    queries, problem.width, to.queries);
  }

  void pack(const Tile& tile) {
    const int64_t width = problem.width;
    pack_left<Math>(row_of<T>(problem.k, work.b, work.h, tile.first_key), problem.k.strides.row,
                    tile.keys, width, to.copies);
    turn({to.copies, step}, tile.keys, units<Math>(width), to.keys, kTile, tile.columns);
    pack_right<Math>(row_of<T>(problem.v, work.b, work.h, tile.first_key), problem.v.strides.row,
                     tile.keys, width, to.values);
  }

  void attend(const Tile& tile) {
    const int64_t at = tile.first_query - first_query;
    product<Math, false>({to.queries + at * step, step}, {to.keys, kTile}, tile.queries,
                         tile.columns, units<Math>(problem.width), {to.scores, kTile, false});
    const float factor = settle_scores(tile, to.scores);
    DropRow drop = tile.dropping();
    const bool dropping = problem.dropout > 0.0;
    for (int64_t i = 0; i < tile.queries; ++i) {
      if (dropping) drop.move_to(tile.place(i), problem.seed);
      const float before = softmax_row<Math>(
          to.scores + i * kTile, tile.columns, factor, dropping ? &drop : nullptr,
          to.largest[at + i], to.totals[at + i], to.weights + i * (kTile / Math::kPerUnit));
      if (before != 1.0F) scale_row(to.sums + (at + i) * size, before);
    }
    product<Math, false>({to.weights, kTile / Math::kPerUnit}, {to.values, size}, tile.queries,
                         round_up(problem.width, kLanes), units<Math>(tile.keys),
                         {to.sums + at * size, size, true});
  }

  void scale_row(float* row, float scale) const {
    const auto factor = hn::Set(Floats(), scale);
    for (int64_t c = 0; c < size; c += kLanes) {
      hn::Store(hn::Mul(hn::Load(Floats(), row + c), factor), Floats(), row + c);
    }
  }

  void finish() {
    float* lse = work.lse == nullptr
                     ? nullptr
                     : work.lse + (work.b * problem.heads + work.h) * problem.queries + first_query;
    for (int64_t i = 0; i < queries; ++i) {
      const float total = to.totals[i];
      const bool blind = total == 0.0F;  // not `<= 0`: NaN must stay NaN
      write_row(to.sums + i * size, blind ? 0.0F : 1.0F / total, problem.width,
                row_of<T>(work.out, work.b, work.h, first_query + i));
      if (lse != nullptr) lse[i] = blind ? kInfinity : (to.largest[i] + std::log2(total)) * kLn2;
    }
  }
};

template <class Math, class T>
void forward(const ForwardWork& work) {
  ForwardPass<Math, T> pass(work);
  const AttentionProblem& problem = *work.problem;
  Carver count;
  pass.to.template lay_out<Math>(count, pass.queries, problem.width);
  const Scratch scratch(count.taken());
  Carver carver(scratch.memory());
  pass.to.template lay_out<Math>(carver, pass.queries, problem.width);
  [[maybe_unused]] const Ready<Math> ready;
  pass.begin();
  for (int64_t k = 0; k < tiles_in(problem.keys); ++k) {
    Tile tile;
    tile.problem = &problem;
    tile.b = work.b;
    tile.h = work.h;
    tile.first_key = k * kTile;
    tile.keys = std::min(kTile, problem.keys - tile.first_key);
    tile.columns = round_up(tile.keys, Math::kColumnStep);
    bool packed = false;
    for (int64_t q = work.first; q < work.last; ++q) {
      const View view = work.views->at(work.b, q, k);
      if (view == View::hidden) continue;
      if (!packed) pass.pack(tile);
      packed = true;
      tile.first_query = q * kTile;
      tile.queries = std::min(kTile, problem.queries - tile.first_query);
      tile.mixed = view == View::mixed;
      pass.attend(tile);
    }
  }
  pass.finish();
}

}  // namespace rondo::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // RONDO_KERNELS_ATTENTION_FORWARD_INL_H_
