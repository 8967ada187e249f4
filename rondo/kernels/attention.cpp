// Splits attention into work items for threads. How backward work is split depends only on the
// problem, so sums are the same for any number of threads.
#include "rondo/kernels/attention.h"

#include "rondo/kernels/attention_plan.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/thresholds.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kKept = int64_t{4} << 20;  // floats of scratch that each thread keeps

struct Memory {
  std::unique_ptr<float, void (*)(void*)> floats{nullptr, std::free};
  int64_t size = 0;
};
thread_local Memory thread_memory;

int worthwhile_threads(const AttentionProblem& p, int threads) {
  const int64_t work = p.batch * p.heads * p.queries * p.keys * p.width * 2;
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, work / kWorthAttention)));
}

// What queries [first, last) see of keys [from, to).
View view_of(const AttentionProblem& p, const uint8_t* rows, int64_t count, int64_t from,
             int64_t to) {
  uint8_t any = 0;
  uint8_t least = 1;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* row = rows + i * p.mask_row;
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
  if (p.mask == nullptr) return;
  const int64_t batch = p.mask_batch == 0 ? 1 : p.batch;
  const int64_t rows = p.mask_row == 0 ? 1 : tiles_in(p.queries);
  const int64_t columns = tiles_in(p.keys);
  views_.resize(static_cast<size_t>(batch * rows * columns));
  batch_step_ = batch == 1 ? 0 : rows * columns;
  row_step_ = rows == 1 ? 0 : columns;
  parallel_for_uneven(batch, batch * rows * columns < 64 ? 1 : threads, [&](int64_t b) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t first = i * kTile;
      const int64_t count = p.mask_row == 0 ? 1 : std::min(kTile, p.queries - first);
      const uint8_t* at = p.mask + b * p.mask_batch + first * p.mask_row;
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
  // Grouping many query tiles reuses packed keys more; fewer per group keep all threads busy.
  constexpr int64_t most = 8;
  const int64_t fair = heads * tiles / (4 * static_cast<int64_t>(threads));
  const int64_t together = threads == 1 ? most : std::max<int64_t>(1, std::min(most, fair));
  const int64_t parts = (tiles + together - 1) / together;
  const AttentionKernels& kernels = attention_kernels(problem.element);
  parallel_for_uneven(heads * parts, threads, [&](int64_t i) {
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

// Splits the batch into groups, each with its own bias gradient sum: at least eight work items
// together with the heads, as long as the sums stay cheap.
int64_t backward_groups(const AttentionProblem& p, bool bias) {
  if (!bias) return p.batch;
  constexpr int64_t wanted = 8;
  constexpr int64_t affordable = 16 << 20;  // floats
  const int64_t sums = affordable / std::max<int64_t>(1, p.heads * p.queries * p.keys);
  return std::min({p.batch, (wanted + p.heads - 1) / p.heads, std::max<int64_t>(1, sums)});
}

}  // namespace

void attention_backward(const AttentionProblem& problem, const AttentionResult& result,
                        const AttentionGradients& gradients, int threads) {
  const AttentionProblem& p = problem;
  threads = worthwhile_threads(p, threads);
  const TileViews views(p, threads);
  const AttentionKernels& kernels = attention_kernels(p.element);
  const int64_t groups = backward_groups(p, gradients.bias != nullptr);
  const int64_t square = p.queries * p.keys;
  std::vector<double> factors(static_cast<size_t>(p.batch * p.heads));
  std::vector<float> bias_sums;  // [groups - 1, H, Tq, Tk]; the first group uses the gradient
  if (gradients.bias != nullptr) {
    bias_sums.resize(static_cast<size_t>((groups - 1) * p.heads * square));
    std::fill_n(gradients.bias, p.heads * square, 0.0F);
  }
  const auto bias_sum = [&](int64_t group, int64_t h) {
    return group == 0 ? gradients.bias + h * square
                      : bias_sums.data() + ((group - 1) * p.heads + h) * square;
  };
  parallel_for_uneven(groups * p.heads, threads, [&](int64_t i) {
    const int64_t group = i / p.heads;
    BackwardWork work;
    work.problem = &p;
    work.views = &views;
    work.result = &result;
    work.gradients = &gradients;
    work.h = i % p.heads;
    if (gradients.bias != nullptr) work.bias_sum = bias_sum(group, work.h);
    for (work.b = p.batch * group / groups; work.b < p.batch * (group + 1) / groups; ++work.b) {
      if (gradients.factor != nullptr) {
        work.factor_share = &factors[static_cast<size_t>(work.b * p.heads + work.h)];
      }
      kernels.backward(work);
    }
  });
  parallel_for_uneven(p.heads, bias_sums.empty() ? 1 : threads, [&](int64_t h) {
    for (int64_t g = 1; gradients.bias != nullptr && g < groups; ++g) {
      const float* from = bias_sum(g, h);
      for (int64_t i = 0; i < square; ++i) gradients.bias[h * square + i] += from[i];
    }
    if (gradients.factor == nullptr) return;
    double total = 0.0;
    for (int64_t b = 0; b < p.batch; ++b) total += factors[static_cast<size_t>(b * p.heads + h)];
    gradients.factor[h] = static_cast<float>(total);
  });
}

}  // namespace rondo::kernels
