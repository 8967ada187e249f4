// Classifying images.
#include "rondo/infer/classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rondo/base/require.h"
#include "rondo/image/decode.h"

namespace rondo {
namespace {

// Softmax in double, so that probabilities of many classes sum to one.
Prediction likeliest_classes(const float* logits, int64_t classes, int64_t top) {
  const float highest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(double{logits[c]} - double{highest});
  if (!std::isfinite(sum)) {
    throw Error(ExitCode::bad_input, "the network's output is not finite",
                "its weights are corrupt, or training diverged");
  }
  std::vector<int64_t> order(static_cast<size_t>(classes));
  std::iota(order.begin(), order.end(), 0);
  const int64_t kept = std::min(top, classes);
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), [&](int64_t a, int64_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  Prediction prediction;
  for (int64_t i = 0; i < kept; ++i) {
    const int64_t c = order[static_cast<size_t>(i)];
    prediction.push_back({c, std::exp(double{logits[c]} - double{highest}) / sum});
  }
  return prediction;
}

}  // namespace

Classifier::Classifier(ImageModel model)
    : model_(std::move(model)),
      runner_(model_.network),
      side_(image_side(model_.config)),
      augmenter_(model_.augment, side_) {}

std::vector<float> Classifier::prepare(std::string_view image, const std::string& name) const {
  std::vector<float> pixels(static_cast<size_t>(3 * side_ * side_));
  augmenter_.evaluate(decode_image(image, name), pixels.data());
  return pixels;
}

Prediction Classifier::classify_image(std::string_view image, int64_t top,
                                      const std::string& name) const {
  return classify(prepare(image, name).data(), 1, top).front();
}

std::vector<Prediction> Classifier::classify(const float* pixels, int64_t rows, int64_t top) const {
  require(rows >= 0 && (rows == 0 || pixels != nullptr) && top >= 1,
          "classifier: expected images and 1 or more top classes, got {} images and {} classes",
          pixels == nullptr ? 0 : rows, top);
  if (rows == 0) return {};
  const int64_t classes = runner_.classes();
  std::vector<float> logits(static_cast<size_t>(rows * classes));
  runner_.forward(pixels, rows, logits.data());
  std::vector<Prediction> predictions;
  for (int64_t r = 0; r < rows; ++r) {
    predictions.push_back(likeliest_classes(logits.data() + r * classes, classes, top));
  }
  return predictions;
}

}  // namespace rondo
