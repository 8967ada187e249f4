// Optimizer steps in one pass over plain memory, several tensors at a time; sums of squares in
// double. Sums are split into pieces that do not depend on the number of threads, so neither do
// results. No torch dependency.
#pragma once

#include <cstdint>
#include <vector>

namespace rondo::kernels {

struct Floats {
  const float* data = nullptr;
  int64_t count = 0;
};
double sum_of_squares(const std::vector<Floats>& parts);

// One tensor of an Adam step; all four arrays have `count` values.
struct AdamPart {
  float* value = nullptr;
  const float* gradient = nullptr;
  float* mean = nullptr;
  float* square = nullptr;
  int64_t count = 0;
  double decay = 0.0;  // weight decay
};

struct AdamStep {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double rate = 0.0;
  double scale = 1.0;      // gradients are multiplied by it first
  bool decoupled = false;  // decay shrinks the weight (AdamW); otherwise added to gradient
  int64_t number = 1;      // of the step, from 1
};

// m = β1·m + (1 - β1)·g;  s = β2·s + (1 - β2)·g²;  w -= rate · m̂ / (√ŝ + ε).
void adam_step(const std::vector<AdamPart>& parts, const AdamStep& step);

// ---- Adafactor, for a matrix [rows, columns] ---------------------------------------------------
// The update of an entry is y = scale · g · row_factor · column_factor. A tensor whose second
// moment is not factored is one row with a factor per entry.

struct AdafactorPart {
  float* value = nullptr;
  const float* gradient = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  double scale = 1.0;
};

// Means of (scale · g)² + floor along each row and each column.
void adafactor_means(const AdafactorPart& part, double floor, float* row_means,
                     float* column_means);

// Elementwise: moment = decay · moment + (1 - decay) · ((scale · g)² + floor) and
// factor = 1 / √moment.
void adafactor_square(const AdafactorPart& part, double floor, double decay, float* moment,
                      float* factor);

struct AdafactorSizes {
  double update = 0.0;  // Σ y²
  double value = 0.0;   // Σ w²
};
AdafactorSizes adafactor_sizes(const AdafactorPart& part, const float* row_factor,
                               const float* column_factor);

// w -= rate · y; with `mean` (may be null): mean = β1·mean + (1 - β1)·rate·y; w -= mean.
void adafactor_apply(const AdafactorPart& part, const float* row_factor, const float* column_factor,
                     double rate, float* mean, double beta1);

}  // namespace rondo::kernels
