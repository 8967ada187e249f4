// How far attention reaches in a whole network, by level and head (RingFormer's Figure 3): the mean
// distance in pixels or tokens, the entropy, and in recurrent language models how much of what a
// token receives comes from the recurrent states.
#pragma once

#include "rondo/study/report.h"
#include "rondo/study/subject.h"

namespace rondo::study {

struct LevelReach {
  std::string group;  // "encoder", "decoder", "levels"
  std::string label;  // "3"; of pyramids "1.3"
  Tensor distance;    // [H], mean over items
  Tensor entropy;     // [H], nats
  // ‖from states‖ / (‖from states‖ + ‖from the window‖) of what each head gives: both have a
  // softmax of their own, so their probabilities cannot be compared. Undefined: reads no states.
  Tensor state_share;
  Tensor state_entropy;  // [H]; undefined likewise
};

struct AttentionReach {
  std::string name;  // of the network
  bool pixels = false;
  int64_t items = 0;
  std::vector<LevelReach> levels;
};

// `image_side`: pixels of an image's side; 0 for text. Levels without attention are left out.
// Error{bad_input} if there are no data, or no level has attention.
AttentionReach attention_reach(Network& network, Batches& batches, int64_t image_side);

StudyReport reach_report(const std::vector<AttentionReach>& found);

}  // namespace rondo::study
