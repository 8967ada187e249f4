// Optimiser steps. Work is cut into pieces of fixed size; the loops inside a piece are compiled for
// several CPUs, threads take whole pieces.
#include "rondo/kernels/optimizer.h"

#include <algorithm>
#include <cmath>

#include "rondo/kernels/clones.h"
#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kPiece = int64_t{1} << 14;

// Where a piece lies: entries [first, last) of part `part`.
struct Piece {
  size_t part = 0;
  int64_t first = 0;
  int64_t last = 0;
};

template <class Part>
std::vector<Piece> pieces_of(const std::vector<Part>& parts) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (int64_t first = 0; first < parts[i].count; first += kPiece) {
      pieces.push_back({i, first, std::min(first + kPiece, parts[i].count)});
    }
  }
  return pieces;
}

RONDO_CLONES
double piece_squares(const float* x, int64_t count) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  return sum;
}

// What a step is for every entry of one part.
struct AdamFactors {
  float scale, beta1, beta2, rest1, rest2, rate, root_scale, epsilon;
  float shrink;  // of the weight
  float join;    // of the weight to the gradient
};

RONDO_CLONES
void adam_piece(float* __restrict value, const float* __restrict gradient, float* __restrict mean,
                float* __restrict square, int64_t count, const AdamFactors& given) {
  const AdamFactors f = given;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float w = value[i];
    const float g = gradient[i] * f.scale + f.join * w;
    const float m = f.beta1 * mean[i] + f.rest1 * g;
    const float s = f.beta2 * square[i] + f.rest2 * g * g;
    mean[i] = m;
    square[i] = s;
    value[i] = f.shrink * w - f.rate * m / (root(s) * f.root_scale + f.epsilon);
  }
}

// ---- Adafactor -------------------------------------------------------------------------------

// Rows of one piece: at most 64 pieces, so that their sums of columns take little room.
int64_t rows_per_piece(int64_t rows) { return std::max<int64_t>(16, (rows + 63) / 64); }

RONDO_CLONES
double row_squares(const float* __restrict g, int64_t count, float scale, float floor,
                   float* __restrict column_sums) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const float x = g[i] * scale;
    const float square = x * x + floor;
    column_sums[i] += square;
    sum += square;
  }
  return sum;
}

RONDO_CLONES
void square_piece(const float* __restrict g, int64_t count, float scale, float floor, float decay,
                  float* __restrict moment, float* __restrict factor) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float x = g[i] * scale;
    moment[i] = decay * moment[i] + (1.0F - decay) * (x * x + floor);
    factor[i] = reciprocal_root(moment[i]);
  }
}

RONDO_CLONES
AdafactorSizes row_sizes(const float* __restrict value, const float* __restrict g, int64_t count,
                         float factor, const float* __restrict column_factor) {
  double update = 0.0;
  double own = 0.0;
#pragma omp simd reduction(+ : update, own)
  for (int64_t i = 0; i < count; ++i) {
    const float y = g[i] * factor * column_factor[i];
    update += static_cast<double>(y) * static_cast<double>(y);
    own += static_cast<double>(value[i]) * static_cast<double>(value[i]);
  }
  return {update, own};
}

RONDO_CLONES
void apply_row(float* __restrict value, const float* __restrict g, int64_t count, float factor,
               const float* __restrict column_factor) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) value[i] -= g[i] * factor * column_factor[i];
}

RONDO_CLONES
void apply_row_with_mean(float* __restrict value, const float* __restrict g, int64_t count,
                         float factor, const float* __restrict column_factor,
                         float* __restrict mean, float beta1) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float y = g[i] * factor * column_factor[i];
    mean[i] = beta1 * mean[i] + (1.0F - beta1) * y;
    value[i] -= mean[i];
  }
}

// A stretch of one row: rows may be one long one, and threads share that too.
struct Stretch {
  int64_t row = 0;
  int64_t first = 0;
  int64_t count = 0;
};

// Stretch number `index` of a matrix.
Stretch stretch_at(const AdafactorPart& part, int64_t index) {
  const int64_t in_a_row = (part.columns + kPiece - 1) / kPiece;
  const int64_t first = index % in_a_row * kPiece;
  return {index / in_a_row, first, std::min(kPiece, part.columns - first)};
}

int64_t stretches(const AdafactorPart& part) {
  return part.rows * ((part.columns + kPiece - 1) / kPiece);
}

// Whether a matrix is large enough for threads to pay.
[[maybe_unused]] bool is_large(const AdafactorPart& part) {
  return part.rows * part.columns > 4 * kPiece;
}

}  // namespace

double sum_of_squares(const std::vector<Floats>& parts) {
  const std::vector<Piece> pieces = pieces_of(parts);
  const auto count = static_cast<int64_t>(pieces.size());
  std::vector<double> sums(pieces.size());
#pragma omp parallel for schedule(static) if (count > 4)
  for (int64_t i = 0; i < count; ++i) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    sums[static_cast<size_t>(i)] =
        piece_squares(parts[piece.part].data + piece.first, piece.last - piece.first);
  }
  double sum = 0.0;
  for (const double s : sums) sum += s;
  return sum;
}

void adam_step(const std::vector<AdamPart>& parts, const AdamStep& step) {
  const auto t = static_cast<double>(step.number);
  const double mean_scale = 1.0 - std::pow(step.beta1, t);
  const double square_scale = 1.0 - std::pow(step.beta2, t);
  AdamFactors common = {};
  common.scale = static_cast<float>(step.scale);
  common.beta1 = static_cast<float>(step.beta1);
  common.beta2 = static_cast<float>(step.beta2);
  common.rest1 = static_cast<float>(1.0 - step.beta1);
  common.rest2 = static_cast<float>(1.0 - step.beta2);
  common.rate = static_cast<float>(step.rate / mean_scale);
  common.root_scale = static_cast<float>(1.0 / std::sqrt(square_scale));
  common.epsilon = static_cast<float>(step.epsilon);
  const std::vector<Piece> pieces = pieces_of(parts);
  const auto count = static_cast<int64_t>(pieces.size());
#pragma omp parallel for schedule(static) if (count > 4)
  for (int64_t i = 0; i < count; ++i) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    const AdamPart& p = parts[piece.part];
    AdamFactors f = common;
    f.shrink = step.decoupled ? static_cast<float>(1.0 - step.rate * p.decay) : 1.0F;
    f.join = step.decoupled ? 0.0F : static_cast<float>(p.decay);
    adam_piece(p.value + piece.first, p.gradient + piece.first, p.mean + piece.first,
               p.square + piece.first, piece.last - piece.first, f);
  }
}

void adafactor_means(const AdafactorPart& part, double floor, float* row_means,
                     float* column_means) {
  const int64_t per_piece = rows_per_piece(part.rows);
  const int64_t pieces = (part.rows + per_piece - 1) / per_piece;
  std::vector<float> sums(static_cast<size_t>(pieces * part.columns));  // [pieces, columns]
#pragma omp parallel for schedule(static) if (is_large(part))
  for (int64_t p = 0; p < pieces; ++p) {
    const int64_t last = std::min(part.rows, (p + 1) * per_piece);
    for (int64_t r = p * per_piece; r < last; ++r) {
      const double sum = row_squares(part.gradient + r * part.columns, part.columns,
                                     static_cast<float>(part.scale), static_cast<float>(floor),
                                     sums.data() + p * part.columns);
      row_means[r] = static_cast<float>(sum / static_cast<double>(part.columns));
    }
  }
  for (int64_t c = 0; c < part.columns; ++c) {
    double sum = 0.0;
    for (int64_t p = 0; p < pieces; ++p) sum += sums[static_cast<size_t>(p * part.columns + c)];
    column_means[c] = static_cast<float>(sum / static_cast<double>(part.rows));
  }
}

void adafactor_square(const AdafactorPart& part, double floor, double decay, float* moment,
                      float* factor) {
  const int64_t count = stretches(part);
#pragma omp parallel for schedule(static) if (is_large(part))
  for (int64_t i = 0; i < count; ++i) {
    const Stretch s = stretch_at(part, i);
    const int64_t at = s.row * part.columns + s.first;
    square_piece(part.gradient + at, s.count, static_cast<float>(part.scale),
                 static_cast<float>(floor), static_cast<float>(decay), moment + at, factor + at);
  }
}

AdafactorSizes adafactor_sizes(const AdafactorPart& part, const float* row_factor,
                               const float* column_factor) {
  const int64_t count = stretches(part);
  std::vector<AdafactorSizes> sizes(static_cast<size_t>(count));
#pragma omp parallel for schedule(static) if (is_large(part))
  for (int64_t i = 0; i < count; ++i) {
    const Stretch s = stretch_at(part, i);
    const int64_t at = s.row * part.columns + s.first;
    const float factor = static_cast<float>(part.scale) * row_factor[s.row];
    sizes[static_cast<size_t>(i)] =
        row_sizes(part.value + at, part.gradient + at, s.count, factor, column_factor + s.first);
  }
  AdafactorSizes total;
  for (const AdafactorSizes& s : sizes) {
    total.update += s.update;
    total.value += s.value;
  }
  return total;
}

void adafactor_apply(const AdafactorPart& part, const float* row_factor, const float* column_factor,
                     double rate, float* mean, double beta1) {
  const int64_t count = stretches(part);
#pragma omp parallel for schedule(static) if (is_large(part))
  for (int64_t i = 0; i < count; ++i) {
    const Stretch s = stretch_at(part, i);
    const int64_t at = s.row * part.columns + s.first;
    const auto factor = static_cast<float>(rate * part.scale * row_factor[s.row]);
    if (mean == nullptr) {
      apply_row(part.value + at, part.gradient + at, s.count, factor, column_factor + s.first);
    } else {
      apply_row_with_mean(part.value + at, part.gradient + at, s.count, factor,
                          column_factor + s.first, mean + at, static_cast<float>(beta1));
    }
  }
}

}  // namespace rondo::kernels
