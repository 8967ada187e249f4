// Work is split into pieces of fixed size, which threads process whole; the loops inside a piece
// are compiled for several CPUs.
#include "rondo/kernels/optimizer.h"

#include <algorithm>
#include <cmath>

#include "rondo/kernels/clones.h"
#include "rondo/kernels/parallel.h"
#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kPiece = int64_t{1} << 14;

// Entries [first, last) of part `part`.
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

// Calls work(number, piece) for each piece.
template <class Work>
void each_piece(const std::vector<Piece>& pieces, const Work& work) {
  const auto count = static_cast<int64_t>(pieces.size());
  parallel_for(count, count > 4,
               [&](int64_t i) { work(static_cast<size_t>(i), pieces[static_cast<size_t>(i)]); });
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

// Constants of a step for all entries of one part.
struct AdamFactors {
  float scale, beta1, beta2, rest1, rest2, rate, root_scale, epsilon;
  float shrink;  // factor on the weight
  float join;    // share of the weight added to the gradient
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
    value[i] = f.shrink * w - f.rate * m / (std::sqrt(s) * f.root_scale + f.epsilon);
  }
}

// ---- Adafactor -------------------------------------------------------------------------------

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
    factor[i] = 1.0F / std::sqrt(moment[i]);
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

// A stretch of one row: a matrix may be a single long row, which threads share too.
struct Stretch {
  int64_t index = 0;
  int64_t row = 0;
  int64_t first = 0;  // column
  int64_t count = 0;
  int64_t at = 0;  // in the matrix
};

int64_t stretches(const AdafactorPart& part) {
  return part.rows * ((part.columns + kPiece - 1) / kPiece);
}

// Whether a matrix is large enough for threads to pay off.
bool is_large(const AdafactorPart& part) { return part.rows * part.columns > 4 * kPiece; }

template <class Work>
void each_stretch(const AdafactorPart& part, const Work& work) {
  parallel_for(stretches(part), is_large(part), [&](int64_t index) {
    const int64_t in_a_row = (part.columns + kPiece - 1) / kPiece;
    const int64_t row = index / in_a_row;
    const int64_t first = index % in_a_row * kPiece;
    work({index, row, first, std::min(kPiece, part.columns - first), row * part.columns + first});
  });
}

}  // namespace

double sum_of_squares(const std::vector<Floats>& parts) {
  const std::vector<Piece> pieces = pieces_of(parts);
  std::vector<double> sums(pieces.size());
  each_piece(pieces, [&](size_t i, const Piece& piece) {
    sums[i] = piece_squares(parts[piece.part].data + piece.first, piece.last - piece.first);
  });
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
  each_piece(pieces_of(parts), [&](size_t /*i*/, const Piece& piece) {
    const AdamPart& p = parts[piece.part];
    AdamFactors f = common;
    f.shrink = step.decoupled ? static_cast<float>(1.0 - step.rate * p.decay) : 1.0F;
    f.join = step.decoupled ? 0.0F : static_cast<float>(p.decay);
    adam_piece(p.value + piece.first, p.gradient + piece.first, p.mean + piece.first,
               p.square + piece.first, piece.last - piece.first, f);
  });
}

void adafactor_means(const AdafactorPart& part, double floor, float* row_means,
                     float* column_means) {
  const RowPieces pieces(part.rows);
  std::vector<float> sums(static_cast<size_t>(pieces.count * part.columns));  // [pieces, columns]
  parallel_for(pieces.count, is_large(part), [&](int64_t p) {
    for (int64_t r = pieces.first(p); r < pieces.last(p); ++r) {
      const double sum = row_squares(part.gradient + r * part.columns, part.columns,
                                     static_cast<float>(part.scale), static_cast<float>(floor),
                                     sums.data() + p * part.columns);
      row_means[r] = static_cast<float>(sum / static_cast<double>(part.columns));
    }
  });
  add_pieces(sums.data(), pieces.count, part.columns, part.columns, column_means,
             static_cast<double>(part.rows));
}

void adafactor_square(const AdafactorPart& part, double floor, double decay, float* moment,
                      float* factor) {
  each_stretch(part, [&](const Stretch& s) {
    square_piece(part.gradient + s.at, s.count, static_cast<float>(part.scale),
                 static_cast<float>(floor), static_cast<float>(decay), moment + s.at,
                 factor + s.at);
  });
}

AdafactorSizes adafactor_sizes(const AdafactorPart& part, const float* row_factor,
                               const float* column_factor) {
  std::vector<AdafactorSizes> sizes(static_cast<size_t>(stretches(part)));
  each_stretch(part, [&](const Stretch& s) {
    const float factor = static_cast<float>(part.scale) * row_factor[s.row];
    sizes[static_cast<size_t>(s.index)] = row_sizes(part.value + s.at, part.gradient + s.at,
                                                    s.count, factor, column_factor + s.first);
  });
  AdafactorSizes total;
  for (const AdafactorSizes& s : sizes) {
    total.update += s.update;
    total.value += s.value;
  }
  return total;
}

void adafactor_apply(const AdafactorPart& part, const float* row_factor, const float* column_factor,
                     double rate, float* mean, double beta1) {
  each_stretch(part, [&](const Stretch& s) {
    const auto factor = static_cast<float>(rate * part.scale * row_factor[s.row]);
    if (mean == nullptr) {
      apply_row(part.value + s.at, part.gradient + s.at, s.count, factor, column_factor + s.first);
    } else {
      apply_row_with_mean(part.value + s.at, part.gradient + s.at, s.count, factor,
                          column_factor + s.first, mean + s.at, static_cast<float>(beta1));
    }
  });
}

}  // namespace rondo::kernels
