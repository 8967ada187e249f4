// Batches of images for a network, decoded and augmented ahead by threads.
//
// The order of images and every random draw are functions of (seed, epoch, position in the epoch):
// batches are the same for any number of threads, and a pass resumes exactly where it stopped.
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
  std::vector<float> pixels;    // [rows, 3, side, side], normalized and already mixed
  std::vector<int64_t> labels;  // [rows]
  std::vector<int64_t> index;   // [rows]; index in the set
  int64_t epoch = 0;            // of the first row, from 0
  // With mix.mixed the target of row r is mix.lambda of its own label and the rest of the label of
  // row rows - 1 - r: mixed_targets().
  Mix mix;
  std::vector<BadImage> bad;  // images that could not be read for these rows
};

struct LoaderOptions {
  int64_t rows = 64;
  int64_t side = 224;
  uint64_t seed = 1;
  // Training: endless, shuffled, augmented; batches are always full, across epochs.
  // Otherwise: every image once, in set order; the last batch may be shorter.
  bool training = true;
  bool strict = false;  // an unreadable image is an Error; otherwise it is skipped
  int64_t threads = 0;  // 0: one per core
  int64_t ahead = 3;    // maximum number of batches prepared in advance
  // Shards take turns: of every `size` batches, rank r gets the r-th.
  Shard shard = {};
};

// Each unreadable image is named in one warning. In training the next readable image of the set
// takes its place; otherwise its row is left out, so that a batch may have fewer rows, even none.
// Not thread-safe.
class ImageLoader {
 public:
  // `images` must outlive the loader; `augment` must have passed check_augment().
  ImageLoader(const ImageSet& images, const AugmentConfig& augment, const LoaderOptions& options);
  ~ImageLoader();
  ImageLoader(const ImageLoader&) = delete;
  ImageLoader& operator=(const ImageLoader&) = delete;

  // The next batch; the buffers of `out` are reused. Returns false, with `out` untouched, at the
  // end of a finite pass. Error as from ImageSet::load() if strict, or if a hundred consecutive
  // images cannot be read; after an Error only seek() and destruction are allowed.
  bool next(ImageBatch& out);

  // The loader's position, as JSON of about a hundred bytes: the same in all shards after the same
  // number of next() calls.
  std::string position() const;

  // Restores a position(): the next batch is the one that would have followed there.
  // Error{bad_input}, with nothing changed, if the position is invalid or belongs to another set or
  // another order (rows, seed, repeats, training). The augmentation and the side may differ. With
  // `other_rows` the batch size may differ too: less than a batch is read twice.
  void seek(const std::string& position, bool other_rows = false);

  int64_t epoch() const;    // of the next batch's first row, from 0
  int64_t batches() const;  // in one finite pass, over all shards
  int64_t skipped() const;  // distinct images that could not be read so far

  const Augmenter& augmenter() const;

 private:
  class WorkerPool;
  std::unique_ptr<WorkerPool> workers_;
};

}  // namespace rondo
