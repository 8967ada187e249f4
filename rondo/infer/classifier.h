// Classifies images. A classifier is immutable and may be called from any thread; callers take
// turns at the runtime's threads.
#pragma once

#include "rondo/image/augment.h"
#include "rondo/infer/image_runner.h"

namespace rondo {

struct ClassProbability {
  int64_t number = 0;
  double probability = 0;
};
using Prediction = std::vector<ClassProbability>;  // likeliest first; ties by lower number

class Classifier {
 public:
  explicit Classifier(ImageModel model);

  // The `top` likeliest classes of an image, given as the bytes of a JPEG or PNG file. `name`: used
  // for the image in error messages.
  Prediction classify_image(std::string_view image, int64_t top,
                            const std::string& name = "image") const;
  // Such an image as network input [3, side, side].
  std::vector<float> prepare(std::string_view image, const std::string& name = "image") const;

  // The `top` likeliest classes of each image, or all if there are fewer. pixels: [rows, 3, side,
  // side] as produced by Augmenter::evaluate(). Throws Error{bad_input} if the network's output is
  // not finite.
  std::vector<Prediction> classify(const float* pixels, int64_t rows, int64_t top) const;

  int64_t side() const { return side_; }
  const ClassNames& names() const { return model_.names; }
  const Augmenter& augmenter() const { return augmenter_; }

 private:
  ImageModel model_;
  ImageRunner runner_;
  int64_t side_;
  Augmenter augmenter_;
};

}  // namespace rondo
