// From prepared images to the likeliest classes.
#pragma once

#include "rondo/train/image_model.h"

namespace rondo {

struct ClassProbability {
  int64_t number = 0;
  double probability = 0;
};
using Prediction = std::vector<ClassProbability>;  // likeliest first; of equals the lower number

class Classifier {
 public:
  explicit Classifier(ImageModel model);

  // The `top` likeliest classes of each image, all of them where there are fewer. pixels: [rows, 3,
  // side, side] as Augmenter::evaluate() makes them. Error{bad_input} if the network answers
  // something that is no number.
  std::vector<Prediction> classify(const float* pixels, int64_t rows, int64_t top);

  int64_t side() const { return side_; }
  const ClassNames& names() const { return model_.names; }
  const AugmentConfig& augment() const { return model_.augment; }

 private:
  ImageModel model_;
  int64_t side_;
};

// The names in `path` for the classes of a network. Error{usage} if it is no image network,
// Error{bad_input} unless there are as many as it has classes.
ClassNames read_names_for(const ModelConfig& config, const std::string& path);

}  // namespace rondo
