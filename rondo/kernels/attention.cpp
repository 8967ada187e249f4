// Attention as pieces of work for several threads. How backward work is cut depends on the problem
// alone, so that sums are the same for any number of threads.
#include "rondo/kernels/attention.h"

#include <cstring>

#include "rondo/kernels/attention_plan.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kKept = int64_t{4} << 20;  // floats of scratch that a thread keeps

struct Memory {
  std::unique_ptr<float, void (*)(void*)> floats{nullptr, std::free};
  int64_t size = 0;
};
thread_local Memory thread_memory;

// Runs `work(i)` for i < count; whoever is free takes the next.
template <class Work>
void share_out(int64_t count, int threads, const Work& work) {
#ifdef _OPENMP
  if (threads > 1 && count > 1) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < count; ++i) work(i);
    return;
  }
#endif
  (void)threads;
  for (int64_t i = 0; i < count; ++i) work(i);
}

// A second thread takes some microseconds to wake.
int worthwhile_threads(const AttentionProblem& p, int threads) {
  constexpr int64_t least = 1 << 19;  // multiply-adds per thread
  const int64_t work = p.batch * p.heads * p.queries * p.keys * p.width * 2;
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, work / least)));
}

// What queries [first, last) see of keys [from, to).
View view_of(const AttentionProblem& p, const uint8_t* rows, int64_t count, int64_t from,
             int64_t to) {
  uint8_t any = 0;
  uint8_t least = 1;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* row = rows + i * p.visible_row;
    for (int64_t j = from; j < to; ++j) {
      any |= row[j];
      least = std::min(least, row[j]);
    }
  }
  if (any == 0) return View::hidden;
  return least == 0 ? View::mixed : View::whole;
}

}  // namespace

Scratch::Scratch(int64_t floats) {
  if (thread_memory.size < floats) {
    thread_memory.floats.reset();
    thread_memory.size = 0;
    void* memory = std::aligned_alloc(64, static_cast<size_t>(padded(floats)) * sizeof(float));
    if (memory == nullptr) throw std::bad_alloc();
    thread_memory.floats.reset(static_cast<float*>(memory));
    thread_memory.size = floats;
  }
  memory_ = thread_memory.floats.get();
}

Scratch::~Scratch() {
  if (thread_memory.size > kKept) thread_memory = Memory();
}

TileViews::TileViews(const AttentionProblem& p, int threads) {
  if (p.visible == nullptr) return;
  const int64_t batch = p.visible_batch == 0 ? 1 : p.batch;
  const int64_t rows = p.visible_row == 0 ? 1 : tiles_in(p.queries);
  const int64_t columns = tiles_in(p.keys);
  views_.resize(static_cast<size_t>(batch * rows * columns));
  batch_step_ = batch == 1 ? 0 : rows * columns;
  row_step_ = rows == 1 ? 0 : columns;
  share_out(batch, batch * rows * columns < 64 ? 1 : threads, [&](int64_t b) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t first = i * kTile;
      const int64_t count = p.visible_row == 0 ? 1 : std::min(kTile, p.queries - first);
      const uint8_t* at = p.visible + b * p.visible_batch + first * p.visible_row;
      for (int64_t j = 0; j < columns; ++j) {
        views_[static_cast<size_t>((b * rows + i) * columns + j)] =
            view_of(p, at, count, j * kTile, std::min((j + 1) * kTile, p.keys));
      }
    }
  });
}

void attention_forward(const AttentionProblem& problem, const Sink& out, float* lse, int threads) {
  threads = worthwhile_threads(problem, threads);
  const TileViews views(problem, threads);
  const int64_t heads = problem.batch * problem.heads;
  const int64_t tiles = tiles_in(problem.queries);
  // Many query tiles together use packed keys more often; fewer keep all threads busy.
  constexpr int64_t most = 8;
  const int64_t fair = heads * tiles / (4 * static_cast<int64_t>(threads));
  const int64_t together = threads == 1 ? most : std::max<int64_t>(1, std::min(most, fair));
  const int64_t parts = (tiles + together - 1) / together;
  const AttentionKernels& kernels = attention_kernels(problem.element);
  share_out(heads * parts, threads, [&](int64_t i) {
    ForwardWork work;
    work.problem = &problem;
    work.views = &views;
    work.out = out;
    work.lse = lse;
    work.b = i / parts / problem.heads;
    work.h = i / parts % problem.heads;
    work.first = i % parts * together;
    work.last = std::min(tiles, work.first + together);
    kernels.forward(work);
  });
}

namespace {

// The cut of the backward pass: `groups` of rows of the batch, each with its own sum of bias
// gradients, and `parts` of the keys, each with its own sum of query gradients.
struct BackwardCut {
  int64_t groups = 1;
  int64_t parts = 1;
};

BackwardCut cut_backward(const AttentionProblem& p, bool bias) {
  constexpr int64_t wanted = 8;             // pieces, at least, if they cost little
  constexpr int64_t affordable = 16 << 20;  // floats
  BackwardCut cut;
  cut.groups = p.batch;
  if (bias) {
    const int64_t sums = affordable / std::max<int64_t>(1, p.heads * p.queries * p.keys);
    cut.groups = std::min({p.batch, (wanted + p.heads - 1) / p.heads, std::max<int64_t>(1, sums)});
  }
  const int64_t pieces = cut.groups * p.heads;
  if (pieces < wanted) {
    const int64_t sums = affordable / std::max<int64_t>(1, p.batch * p.heads * p.queries * p.width);
    cut.parts =
        std::min({tiles_in(p.keys), (wanted + pieces - 1) / pieces, std::max<int64_t>(1, sums)});
  }
  return cut;
}

// Everything the pieces of one backward pass write before it is put together.
struct BackwardSums {
  std::vector<float> bias;     // [groups, H, Tq, Tk], unless there is one group
  std::vector<double> factor;  // [B, H], if asked for
  std::unique_ptr<float, void (*)(void*)> queries{nullptr, std::free};  // [B, H, parts, Tq, ...]
};

void add_up(const AttentionProblem& p, const BackwardCut& cut, const AttentionGradients& gradients,
            const BackwardSums& sums, int threads) {
  const int64_t square = p.queries * p.keys;
  if (!sums.bias.empty()) {
    share_out(p.heads, threads, [&](int64_t h) {
      float* to = gradients.bias + h * square;
      std::memcpy(to, sums.bias.data() + h * square, static_cast<size_t>(square) * sizeof(float));
      for (int64_t g = 1; g < cut.groups; ++g) {
        const float* from = sums.bias.data() + (g * p.heads + h) * square;
        for (int64_t i = 0; i < square; ++i) to[i] += from[i];
      }
    });
  }
  if (gradients.factor == nullptr) return;
  for (int64_t h = 0; h < p.heads; ++h) {
    double total = 0.0;
    for (int64_t b = 0; b < p.batch; ++b)
      total += sums.factor[static_cast<size_t>(b * p.heads + h)];
    gradients.factor[h] = static_cast<float>(total);
  }
}

}  // namespace

void attention_backward(const AttentionProblem& problem, const AttentionResult& result,
                        const AttentionGradients& gradients, int threads) {
  const AttentionProblem& p = problem;
  threads = worthwhile_threads(p, threads);
  const TileViews views(p, threads);
  const AttentionKernels& kernels = attention_kernels(p.element);
  const BackwardCut cut = cut_backward(p, gradients.bias != nullptr);
  const int64_t square = p.queries * p.keys;
  const int64_t share = share_size(p);
  BackwardSums sums;
  if (gradients.factor != nullptr) sums.factor.resize(static_cast<size_t>(p.batch * p.heads));
  float* bias = gradients.bias;
  if (bias != nullptr && cut.groups > 1) {
    sums.bias.resize(static_cast<size_t>(cut.groups * p.heads * square));
    bias = sums.bias.data();
  } else if (bias != nullptr) {
    std::memset(bias, 0, static_cast<size_t>(p.heads * square) * sizeof(float));
  }
  if (cut.parts > 1) {
    const int64_t floats = p.batch * p.heads * cut.parts * share;
    void* memory = std::aligned_alloc(64, static_cast<size_t>(floats) * sizeof(float));
    if (memory == nullptr) throw std::bad_alloc();
    sums.queries.reset(static_cast<float*>(memory));
  }
  const int64_t tiles = tiles_in(p.keys);
  share_out(cut.groups * p.heads * cut.parts, threads, [&](int64_t i) {
    const int64_t group = i / cut.parts / p.heads;
    const int64_t part = i % cut.parts;
    BackwardWork work;
    work.problem = &p;
    work.views = &views;
    work.result = &result;
    work.gradients = &gradients;
    work.h = i / cut.parts % p.heads;
    if (bias != nullptr) work.bias_sum = bias + (group * p.heads + work.h) * square;
    work.first = tiles * part / cut.parts;
    work.last = tiles * (part + 1) / cut.parts;
    for (work.b = p.batch * group / cut.groups; work.b < p.batch * (group + 1) / cut.groups;
         ++work.b) {
      const int64_t head = work.b * p.heads + work.h;
      if (!sums.factor.empty()) work.factor_share = &sums.factor[static_cast<size_t>(head)];
      if (cut.parts > 1) work.query_share = sums.queries.get() + (head * cut.parts + part) * share;
      kernels.backward(work);
    }
  });
  if (cut.parts > 1) {
    share_out(p.batch * p.heads, threads, [&](int64_t head) {
      QueryGradientWork work;
      work.problem = &p;
      work.gradients = &gradients;
      work.shares = sums.queries.get() + head * cut.parts * share;
      work.count = cut.parts;
      if (!sums.factor.empty()) work.factor_share = &sums.factor[static_cast<size_t>(head)];
      work.b = head / p.heads;
      work.h = head % p.heads;
      kernels.query_gradient(work);
    });
  }
  add_up(p, cut, gradients, sums, threads);
}

}  // namespace rondo::kernels
