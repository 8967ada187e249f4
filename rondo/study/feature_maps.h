// What an image network sees in an image (SReT's Figure 6): the feature maps of its levels, loop by
// loop, and which patches its attention reaches through all of them.
#pragma once

#include "rondo/image/image.h"
#include "rondo/study/report.h"
#include "rondo/study/subject.h"

namespace rondo::study {

struct LevelMaps {
  std::string label;              // "level 3", "stage 1, block 2, loop 1"
  Tensor mean;                    // [h, w], over channels
  Tensor strongest;               // [k, h, w], those with the highest mean absolute value
  std::vector<int64_t> channels;  // their numbers
};

// Attention rollout (Abnar and Zuidema, 2020) of one stack: products of (A + 1) / 2, A being the
// mean over heads; what the class token, or else all patches on average, sees of each patch.
struct Rollout {
  std::string label;
  Tensor seen;  // [h, w], sums to at most 1
};

struct ImageActivations {
  std::string name;
  Tensor image;  // [3, side, side] as the network reads it
  std::string predicted;
  double probability = 0;
  std::vector<LevelMaps> levels;
  std::vector<Rollout> rollouts;  // none for networks without attention
};

struct FeatureMapOptions {
  std::vector<std::string> levels;  // labels ("3"; of pyramids "1.3"); empty = all
  int64_t channels = 6;
};

// Of every image of `batch`. Error{bad_input} if there is no such level.
std::vector<ImageActivations> image_activations(Network& network, const Batch& batch,
                                                const FeatureMapOptions& options);

// `pictures`: the images themselves, as people see them.
StudyReport activations_report(const std::vector<ImageActivations>& found,
                               const std::vector<Image>& pictures);

// A [N, N] of groups of tokens p [G, H, n, n], the mean over heads, tokens back in their places.
// `permutation` may be undefined.
Tensor whole_attention(const Tensor& p, const Tensor& permutation);

}  // namespace rondo::study
