// How RingFormer's shared block is steered at each level: the size of a level's signals beside what
// they join and their direction, on data; and how alike the weights are that the levels end up
// with.
#pragma once

#include "rondo/study/report.h"
#include "rondo/study/subject.h"

namespace rondo::study {

// One signal: of query, key, value or feed-forward of a level.
struct SignalSize {
  std::string group;  // "encoder", "decoder", "levels"
  std::string level;
  std::string part;      // "query", "key", "value", "feed_forward"
  double ratio = 0;      // mean of ‖g(x)‖ / ‖what it joins‖ over tokens
  double direction = 0;  // mean cosine between both: above 0 it amplifies, below 0 it counteracts
};

// How alike the levels' matrices are.
struct WeightSimilarity {
  std::string group;
  std::string part;
  std::vector<std::string> levels;
  Tensor effective;   // [L, L], cosines of the maps as levels apply them: shared weights and signal
  Tensor difference;  // [L, L], ‖A - B‖ / √(‖A‖‖B‖) of the same
  Tensor signals;     // [L, L], cosines of the signals alone
};

struct SignalSizes {
  std::string name;
  int64_t items = 0;
  std::vector<SignalSize> sizes;
  std::vector<WeightSimilarity> weights;
};

// `ring`: the network's. Error{bad_input} if no level of the network has signals, or there are no
// data.
SignalSizes signal_sizes(Network& network, Batches& batches, const RingConfig& ring);

StudyReport signals_report(const std::vector<SignalSizes>& found);

}  // namespace rondo::study
