// Batches of images for a network, decoded and augmented by threads ahead of it.
//
// Which images come when, and every random draw, are functions of (seed, epoch, place in the
// epoch): the batches are the same for any number of threads, and a pass goes on exactly where it
// was left.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rondo/base/shard.h"
#include "rondo/image/augment.h"
#include "rondo/image/mix.h"
#include "rondo/image/sources.h"

namespace rondo {

struct ImageBatch {
  int64_t rows = 0;
  int64_t side = 0;
  std::vector<float> pixels;    // [rows, 3, side, side], normalized, and mixed already
  std::vector<int64_t> labels;  // [rows]
  std::vector<int64_t> index;   // [rows]; which image of the set
  int64_t epoch = 0;            // of the first row, from 0
  // With mix.mixed the target of row r is mix.lambda of its label and the rest of the label of row
  // rows - 1 - r: mixed_targets().
  Mix mix;
  std::vector<BadImage> bad;  // what could not be read on the way to these rows
};

struct LoaderOptions {
  int64_t rows = 64;
  int64_t side = 224;
  uint64_t seed = 1;
  // Training: endless, shuffled, augmented, batches always full (they go on into the next epoch).
  // Else: every image once, in the set's order, the last batch shorter.
  bool training = true;
  bool strict = false;  // an image that cannot be read is an Error; else it is passed over
  int64_t threads = 0;  // 0: one per core
  int64_t ahead = 3;    // batches made before they are asked for, at most
  // Shards take turns: of every `size` batches, that of rank r gets the r-th.
  Shard shard = {};
};

// An image that cannot be read is named once in a warning. In training the next image of the set
// that can be read takes its place; else its row is left out, so that a batch may have fewer rows,
// even none. Not thread-safe itself.
class ImageLoader {
 public:
  // `images` must outlive the loader; `augment` must have passed check_augment().
  ImageLoader(const ImageSet& images, const AugmentConfig& augment, const LoaderOptions& options);
  ~ImageLoader();
  ImageLoader(const ImageLoader&) = delete;
  ImageLoader& operator=(const ImageLoader&) = delete;

  // The next batch; the buffers that `out` brings are used again. False, and `out` untouched, when
  // a finite pass is over. Error as from ImageSet::load() if strict, or if a hundred images in a
  // row cannot be read; after an Error only seek() and destruction are allowed.
  bool next(ImageBatch& out);

  // Where the loader stands, as JSON of some hundred bytes: the same in all shards after equally
  // many calls of next().
  std::string position() const;

  // Goes where position() was taken: the next batch is the one that would have come then.
  // Error{bad_input}, and nothing changed, if it is of another set, another order (rows, seed,
  // repeats, training) or no position at all. The augmentation and the side may differ. With
  // `other_rows` the rows of a batch may differ too: less than a batch is read twice.
  void seek(const std::string& position, bool other_rows = false);

  int64_t epoch() const;    // of the next batch's first row, from 0
  int64_t batches() const;  // of one finite pass, of all shards
  int64_t skipped() const;  // different images that could not be read so far

  const Augmenter& augmenter() const;

 private:
  class WorkerPool;
  std::unique_ptr<WorkerPool> workers_;
};

}  // namespace rondo
