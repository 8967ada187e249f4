// How RingFormer's levels modulate the block they share: the size of a level's signals relative to
// what they are added to and their direction, on data; and the similarity of the levels' effective
// weights.
#pragma once

#include "rondo/study/report.h"
#include "rondo/study/subject.h"

namespace rondo::study {

// One signal of a level: for query, key, value or feed-forward.
struct SignalSize {
  std::string group;  // "encoder", "decoder", "levels"
  std::string level;
  std::string part;      // "query", "key", "value", "feed_forward"
  double ratio = 0;      // mean over tokens of ‖g(x)‖ / ‖what it is added to‖
  double direction = 0;  // mean cosine of the two: above 0 it amplifies, below 0 it counteracts
};

// Similarity of the levels' matrices.
struct WeightSimilarity {
  std::string group;
  std::string part;
  std::vector<std::string> levels;
  Tensor effective;   // [L, L], cosines of the effective weights: shared weights and signal
  Tensor difference;  // [L, L], ‖A - B‖ / √(‖A‖‖B‖) of the same
  Tensor signals;     // [L, L], cosines of the signals alone
};

struct SignalSizes {
  std::string name;
  int64_t items = 0;
  std::vector<SignalSize> sizes;
  std::vector<WeightSimilarity> weights;
};

// `ring`: the network's configuration. Error{bad_input} if no level has signals or there is no
// data.
SignalSizes signal_sizes(Network& network, Batches& batches, const RingConfig& ring);

StudyReport signals_report(const std::vector<SignalSizes>& found);

}  // namespace rondo::study
