// CKA from sums over batches or over all samples.
#include "rondo/study/cka.h"

#include <cmath>

#include "rondo/base/require.h"

namespace rondo::study {
namespace {

constexpr int64_t kFewest = 4;  // samples; HSIC₁ divides by n (n - 3)

int64_t check_rows(const LevelRows& x, const LevelRows& y) {
  require(!x.empty() && !y.empty(), "cka: expected activations of 1 or more levels, got none");
  const int64_t samples = x.front().size(0);
  for (const LevelRows* rows : {&x, &y}) {
    for (const Tensor& level : *rows) {
      require(level.dim() == 2 && level.size(0) == samples,
              "cka: expected [{}, features] of every level, got {} dimensions and {} samples",
              samples, level.dim(), level.size(0));
    }
  }
  return samples;
}

// Gram matrices with zeroed diagonals, as rows [levels, n · n], and their row sums [levels, n].
struct Grams {
  Tensor flat, row_sums;
};

Grams grams_of(const LevelRows& levels) {
  std::vector<Tensor> all;
  for (const Tensor& level : levels) {
    const Tensor x = level.to(at::kDouble);
    all.push_back(at::matmul(x, x.t()).fill_diagonal_(0.0));  // [n, n]
  }
  const Tensor grams = at::stack(all);  // [levels, n, n]
  return {grams.flatten(1), grams.sum(2)};
}

// tr(K L) + 1ᵀK1 1ᵀL1 / ((n-1)(n-2)) - 2/(n-2) 1ᵀK L 1, over n (n-3).
Tensor hsic1(const Tensor& traces, const Tensor& x_total, const Tensor& y_total, const Tensor& rows,
             double n) {
  return (traces + x_total * y_total / ((n - 1) * (n - 2)) - 2.0 / (n - 2) * rows) / (n * (n - 3));
}

// HSIC₁ of every level with itself [levels].
Tensor own_hsic(const Grams& g, double n) {
  const Tensor total = g.row_sums.sum(1);
  return hsic1(g.flat.square().sum(1), total, total, g.row_sums.square().sum(1), n);
}

Tensor accumulate(const Tensor& sum, const Tensor& more) {
  return sum.defined() ? sum + more : more;
}

Tensor quotient(const Tensor& xy, const Tensor& xx, const Tensor& yy) {
  return xy / (xx.unsqueeze(1) * yy.unsqueeze(0)).sqrt();
}

}  // namespace

bool BatchedCka::add(const LevelRows& x, const LevelRows& y) {
  const at::NoGradGuard no_grad;
  const int64_t samples = check_rows(x, y);
  require(!xy_.defined() || (xy_.size(0) == static_cast<int64_t>(x.size()) &&
                             xy_.size(1) == static_cast<int64_t>(y.size())),
          "cka: expected as many levels as in earlier batches, got {} and {}", x.size(), y.size());
  if (samples < kFewest) return false;
  const auto n = static_cast<double>(samples);
  const Grams k = grams_of(x);
  const Grams l = grams_of(y);
  xy_ = accumulate(
      xy_, hsic1(at::matmul(k.flat, l.flat.t()), k.row_sums.sum(1).unsqueeze(1),
                 l.row_sums.sum(1).unsqueeze(0), at::matmul(k.row_sums, l.row_sums.t()), n));
  xx_ = accumulate(xx_, own_hsic(k, n));
  yy_ = accumulate(yy_, own_hsic(l, n));
  ++batches_;
  return true;
}

Tensor BatchedCka::result() const {
  require(batches_ > 0, "cka: expected a batch of 4 or more samples, got none");
  return quotient(xy_, xx_, yy_);
}

void WholeCka::add(const LevelRows& x, const LevelRows& y) {
  const at::NoGradGuard no_grad;
  const int64_t samples = check_rows(x, y);
  if (xy_.empty()) {
    x_.resize(x.size());
    y_.resize(y.size());
    xy_.assign(x.size(), std::vector<Pair>(y.size()));
    xx_.resize(x.size());
    yy_.resize(y.size());
  }
  require(x_.size() == x.size() && y_.size() == y.size(),
          "cka: expected {} and {} levels as before, got {} and {}", x_.size(), y_.size(), x.size(),
          y.size());
  const auto add_level = [](Level& to, const Tensor& rows) {
    to.sum = accumulate(to.sum, rows.sum(0));
    to.norm = accumulate(to.norm, rows.square().sum());
  };
  const auto add_pair = [](Pair& to, const Tensor& a, const Tensor& b) {
    const Tensor a_norm = a.square().sum(1);  // [n]
    const Tensor b_norm = b.square().sum(1);
    to.products = accumulate(to.products, at::matmul(a.t(), b));
    to.x_norms = accumulate(to.x_norms, at::matmul(a.t(), b_norm));
    to.y_norms = accumulate(to.y_norms, at::matmul(b.t(), a_norm));
    to.norms = accumulate(to.norms, at::dot(a_norm, b_norm));
  };
  LevelRows wide_y;
  for (size_t j = 0; j < y.size(); ++j) {
    wide_y.push_back(y[j].to(at::kDouble));
    add_level(y_[j], wide_y[j]);
    add_pair(yy_[j], wide_y[j], wide_y[j]);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const Tensor wide_x = x[i].to(at::kDouble);
    add_level(x_[i], wide_x);
    add_pair(xx_[i], wide_x, wide_x);
    for (size_t j = 0; j < y.size(); ++j) add_pair(xy_[i][j], wide_x, wide_y[j]);
  }
  samples_ += samples;
}

// With K = x xᵀ without its diagonal, S = Σ x and T = Σ y: tr(K L) = ‖Σ x yᵀ‖² - Σ |x|²|y|², the
// sum of row i of K is x_i·S - |x_i|², and the sum of their products follows from the same sums.
double WholeCka::hsic(const Pair& pair, const Level& x, const Level& y, bool unbiased) const {
  const auto n = static_cast<double>(samples_);
  if (!unbiased) {
    const Tensor centered = pair.products - at::outer(x.sum, y.sum) / n;
    return centered.square().sum().item<double>();
  }
  const Tensor traces = pair.products.square().sum() - pair.norms;
  const Tensor x_total = at::dot(x.sum, x.sum) - x.norm;
  const Tensor y_total = at::dot(y.sum, y.sum) - y.norm;
  const Tensor rows = at::dot(x.sum, at::mv(pair.products, y.sum)) - at::dot(x.sum, pair.x_norms) -
                      at::dot(y.sum, pair.y_norms) + pair.norms;
  return hsic1(traces, x_total, y_total, rows, n).item<double>();
}

Tensor WholeCka::result(bool unbiased) const {
  const int64_t fewest = unbiased ? kFewest : 1;
  require(samples_ >= fewest, "cka: expected {} or more samples, got {}", fewest, samples_);
  const Tensor all =
      at::empty({static_cast<int64_t>(x_.size()), static_cast<int64_t>(y_.size())}, at::kDouble);
  for (size_t i = 0; i < x_.size(); ++i) {
    const double xx = hsic(xx_[i], x_[i], x_[i], unbiased);
    for (size_t j = 0; j < y_.size(); ++j) {
      const double yy = hsic(yy_[j], y_[j], y_[j], unbiased);
      all[static_cast<int64_t>(i)][static_cast<int64_t>(j)] =
          hsic(xy_[i][j], x_[i], y_[j], unbiased) / std::sqrt(xx * yy);
    }
  }
  return all;
}

Tensor WholeCka::biased() const { return result(false); }
Tensor WholeCka::unbiased() const { return result(true); }

}  // namespace rondo::study
