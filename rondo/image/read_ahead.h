// Reads and prepares image files in threads while others are processed, and returns them in the
// order requested. (ImageLoader does this for sets known from the start.)
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rondo/image/augment.h"

namespace rondo {

struct PreparedImage {
  std::string path;
  std::string error;          // why it cannot be read; empty on success
  std::vector<float> pixels;  // [3, side, side], as from Augmenter::evaluate()
};

// ask() and take() must be called from one thread.
class ImageReadAhead {
 public:
  // `augmenter` must outlive this. threads: 0 = one per core. most: maximum number of images held.
  ImageReadAhead(const Augmenter& augmenter, int64_t threads, int64_t most);
  ~ImageReadAhead();
  ImageReadAhead(const ImageReadAhead&) = delete;
  ImageReadAhead& operator=(const ImageReadAhead&) = delete;

  int64_t waiting() const { return asked_ - taken_; }  // requested and not taken
  int64_t room() const { return static_cast<int64_t>(slots_.size()) - waiting(); }

  void ask(std::string path);       // only while room() > 0
  void take(PreparedImage& image);  // waits for the oldest; reuses the memory of `image`

 private:
  struct Slot {
    PreparedImage image;
    std::exception_ptr failure;  // not caused by the image: out of memory
    bool ready = false;
  };

  void start();
  void work();
  void prepare(PreparedImage& image) const;
  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  const Augmenter& augmenter_;
  int64_t wanted_threads_;
  std::vector<std::thread> threads_;
  int64_t taken_ = 0;  // used by the caller's thread only

  std::mutex mutex_;  // guards all below; a slot being filled belongs to its thread
  std::condition_variable asked_for_;
  std::condition_variable done_;
  std::vector<Slot> slots_;  // image n is in slot n % size
  int64_t asked_ = 0;        // written by the caller's thread only
  int64_t begun_ = 0;
  bool stopping_ = false;
};

}  // namespace rondo
