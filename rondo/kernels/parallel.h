// Parallel loops. A loop that is too small, or has one iteration, runs serially: a parallel region
// of one thread is still a region, so oneDNN's own would be nested in it and libgomp would start
// new threads. Without OpenMP (clang builds) everything runs serially.
#pragma once

#include <algorithm>
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace rondo::kernels {

// How many threads a loop may use here: one inside another parallel region.
inline int64_t threads_here() {
#ifdef _OPENMP
  return omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

// Calls work(first, last) once per thread, splitting [0, count) into nearly equal ranges.
template <class Work>
void parallel_ranges(int64_t count, bool worth, const Work& work) {
#ifdef _OPENMP
  const int64_t threads = worth ? std::min(threads_here(), count) : 1;
  if (threads > 1) {
#pragma omp parallel num_threads(static_cast <int>(threads))
    {
      const int64_t me = omp_get_thread_num();
      const int64_t all = omp_get_num_threads();
      work(count * me / all, count * (me + 1) / all);
    }
    return;
  }
#endif
  (void)worth;
  if (count > 0) work(int64_t{0}, count);
}

// work(i) for every i < count, in contiguous ranges per thread.
template <class Work>
void parallel_for(int64_t count, bool worth, const Work& work) {
  parallel_ranges(count, worth, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) work(i);
  });
}

// The same for iterations of uneven cost, scheduled dynamically.
template <class Work>
void parallel_for_uneven(int64_t count, int threads, const Work& work) {
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

// ---- sums over rows -----------------------------------------------------------------------------

// Rows in at most 64 pieces that do not depend on the number of threads, so neither do sums taken
// per piece and added in order.
struct RowPieces {
  explicit RowPieces(int64_t all_rows)
      : rows(all_rows),
        each(std::max<int64_t>(16, (rows + 63) / 64)),
        count((rows + each - 1) / each) {}
  int64_t first(int64_t piece) const { return piece * each; }
  int64_t last(int64_t piece) const { return std::min(rows, (piece + 1) * each); }

  int64_t rows, each, count;
};

// total [width] = Σ over pieces of sums, `step` values apart, in double, divided by `divisor`.
inline void add_pieces(const float* sums, int64_t pieces, int64_t step, int64_t width, float* total,
                       double divisor = 1.0) {
  for (int64_t i = 0; i < width; ++i) {
    double sum = 0.0;
    for (int64_t p = 0; p < pieces; ++p) sum += static_cast<double>(sums[p * step + i]);
    total[i] = static_cast<float>(sum / divisor);
  }
}

}  // namespace rondo::kernels
