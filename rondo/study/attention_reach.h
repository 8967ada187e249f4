// Attention distance of a whole network, by level and head (RingFormer's Figure 3): the mean
// distance in pixels or tokens, the entropy; in recurrent language models also the share of a
// token's attention output that comes from the recurrent states, in memorizing ones the share of
// attention that goes to the memory, and its distance.
#pragma once

#include "rondo/study/report.h"
#include "rondo/study/subject.h"

namespace rondo::study {

struct LevelReach {
  std::string group;  // "encoder", "decoder", "levels"
  std::string label;  // "3"; in pyramids "1.3"
  Tensor distance;    // [H], mean over items
  Tensor entropy;     // [H], nats
  // ‖from states‖ / (‖from states‖ + ‖from the window‖) of each head's output: the two have
  // separate softmaxes, so their probabilities are not comparable. Undefined: no states.
  Tensor state_share;
  Tensor state_entropy;  // [H]; likewise
  // Of a level with a memory: attention to it is a softmax over the nearest entries, weighted by
  // the head's gate. The share is 0 for tokens without entries; distance and entropy are those of
  // tokens with entries, undefined if there are none.
  Tensor memory_share, memory_distance, memory_entropy;  // [H]
};

struct AttentionReach {
  std::string name;  // of the network
  bool pixels = false;
  int64_t items = 0;
  std::vector<LevelReach> levels;
};

// `image_side`: side length of the images in pixels; 0 for text. Skips levels without attention.
// Error{bad_input} if there is no data or no level has attention.
AttentionReach attention_reach(Network& network, Batches& batches, int64_t image_side);

StudyReport reach_report(const std::vector<AttentionReach>& found);

}  // namespace rondo::study
