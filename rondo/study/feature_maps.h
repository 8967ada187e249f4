// How an image network represents an image (SReT's Figure 6): the feature maps of its levels, loop
// by loop, and which patches its attention reaches through all of them.
#pragma once

#include "rondo/image/image.h"
#include "rondo/study/report.h"
#include "rondo/study/subject.h"

namespace rondo::study {

struct LevelMaps {
  std::string label;              // "level 3", "level 1.3: block 2, loop 1"
  Tensor mean;                    // [h, w], over channels
  Tensor strongest;               // [k, h, w], channels with the highest mean absolute value
  std::vector<int64_t> channels;  // their indices
};

// Attention rollout of one stack, or of all stages of a pyramid: how much of each patch reaches the
// class token of the last level or, without one, all its patches on average.
struct Rollout {
  std::string label;  // "all levels"; "stage 1", …, "all stages"
  Tensor seen;        // [h, w], sums to at most 1
};

struct ImageActivations {
  std::string name;
  Tensor image;  // [3, side, side], as input to the network
  std::string predicted;
  double probability = 0;
  std::vector<LevelMaps> levels;
  std::vector<Rollout> rollouts;  // none for networks without attention
};

struct FeatureMapOptions {
  std::vector<std::string> levels;  // labels ("3"; in pyramids "1.3"); empty = all
  int64_t channels = 6;
};

// For every image of `batch`. Error{bad_input} if a requested level does not exist.
std::vector<ImageActivations> image_activations(Network& network, const Batch& batch,
                                                const FeatureMapOptions& options);

// The picture in gray, tinted by a map [h, w] that is enlarged to it smoothly.
Image tinted(const Image& picture, const Tensor& map);

// `pictures`: the images themselves, before preprocessing.
StudyReport activations_report(const std::vector<ImageActivations>& found,
                               const std::vector<Image>& pictures);

}  // namespace rondo::study
