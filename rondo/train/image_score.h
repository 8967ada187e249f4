// Classification scores of image networks.
#pragma once

#include <functional>

#include "rondo/image/pipeline.h"
#include "rondo/metrics/test_items.h"
#include "rondo/model/network.h"

namespace rondo {

struct ImageScore {
  int64_t images = 0;
  int64_t first = 0;       // the most likely class was correct
  int64_t among_five = 0;  // one of the five most likely was
  double nats = 0;         // sum of cross-entropies
  double seconds = 0;
  std::vector<BadImage> bad;  // could not be read; not counted above
  struct Class {
    int64_t images = 0;
    int64_t right = 0;
  };
  std::vector<Class> by_class;  // [classes in the set]

  double accuracy() const { return share(first); }       // percent
  double top_five() const { return share(among_five); }  // percent
  double loss() const { return nats / static_cast<double>(std::max<int64_t>(1, images)); }

 private:
  double share(int64_t right) const {
    return 100.0 * static_cast<double>(right) / static_cast<double>(std::max<int64_t>(1, images));
  }
};

struct ImageScoreOptions {
  int64_t side = 224;
  int64_t rows = 64;
  int64_t threads = 0;     // for decoding
  int64_t max_images = 0;  // stop after about this many; 0 = all
  bool strict = false;     // an unreadable image is an Error
  bool progress = false;
  // Each shard scores its own batches; the caller adds up the results of all shards.
  Shard shard = {};
  std::function<bool()> stop = {};  // called between batches; true ends scoring
  TestItems* items = nullptr;       // if not null, receives the result of every readable image
};

// Scores `network` (in evaluation mode) on every image of the set, preprocessed per `augment`.
ImageScore score_images(const std::shared_ptr<Network>& network, const ImageSet& images,
                        const AugmentConfig& augment, const ImageScoreOptions& options);

}  // namespace rondo
