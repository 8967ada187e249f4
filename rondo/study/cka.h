// Linear centered kernel alignment (Kornblith et al. 2019) between the levels of two networks on
// the same data: how similar their representations are, independent of the basis. RingFormer's
// Figures 2 and 4.
//
// Samples are added incrementally and only sums are kept, so memory does not grow with the data.
// Not thread-safe.
#pragma once

#include <vector>

#include "rondo/nn/torch.h"

namespace rondo::study {

// Activations of every level for the same samples: [samples, features] per level.
using LevelRows = std::vector<Tensor>;

// Σ HSIC₁(K, L) over batches of 4 or more samples: the unbiased estimator of Song et al. (2012)
// with linear kernels K = x xᵀ, L = y yᵀ. The authors of RingFormer use the tokens of a sentence as
// a batch; Nguyen et al. (2021) use minibatches of items, each flattened to one row.
class BatchedCka {
 public:
  // Batches of fewer than 4 samples have no unbiased estimate: they are skipped, and false is
  // returned. Error{bad_input} if the number of levels or samples differs.
  bool add(const LevelRows& x, const LevelRows& y);
  Tensor result() const;  // [levels of x, levels of y], double; an Error before the first batch
  int64_t batches() const { return batches_; }

 private:
  Tensor xy_;  // Σ HSIC₁ [Lx, Ly]
  Tensor xx_;  // of each level with itself [Lx]
  Tensor yy_;
  int64_t batches_ = 0;
};

// All samples at once: ‖Σ(y - ȳ)(x - x̄)ᵀ‖² over the norms of the covariances (biased, as usually
// reported), or HSIC₁ of all of them. Keeps a matrix [features, features] for every pair of levels.
class WholeCka {
 public:
  void add(const LevelRows& x, const LevelRows& y);
  Tensor biased() const;    // [levels of x, levels of y], double
  Tensor unbiased() const;  // Error{bad_input} with fewer than 4 samples
  int64_t samples() const { return samples_; }

 private:
  // Sums over samples for two levels, from which both estimates follow.
  struct Pair {
    Tensor products;          // Σ x yᵀ [Dx, Dy]
    Tensor x_norms, y_norms;  // Σ x |y|² [Dx] and Σ |x|² y [Dy]
    Tensor norms;             // Σ |x|² |y|²
  };
  struct Level {
    Tensor sum;   // Σ x [D]
    Tensor norm;  // Σ |x|²
  };
  double hsic(const Pair& pair, const Level& x, const Level& y, bool unbiased) const;
  Tensor result(bool unbiased) const;

  std::vector<Level> x_, y_;
  std::vector<std::vector<Pair>> xy_;
  std::vector<Pair> xx_, yy_;
  int64_t samples_ = 0;
};

}  // namespace rondo::study
