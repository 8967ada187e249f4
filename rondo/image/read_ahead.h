// Image files read and prepared by threads while others are worked on, handed out in the order in
// which they were asked for. (ImageLoader does this for sets that are known from the start.)
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
  std::string error;          // why it cannot be read; empty if it can
  std::vector<float> pixels;  // [3, side, side], as Augmenter::evaluate() makes them
};

// One thread asks and takes.
class ImageReadAhead {
 public:
  // `augmenter` must outlive this. threads: 0 = one per core. most: images held at a time.
  ImageReadAhead(const Augmenter& augmenter, int64_t threads, int64_t most);
  ~ImageReadAhead();
  ImageReadAhead(const ImageReadAhead&) = delete;
  ImageReadAhead& operator=(const ImageReadAhead&) = delete;

  int64_t waiting() const { return asked_ - taken_; }  // asked for and not taken
  int64_t room() const { return static_cast<int64_t>(slots_.size()) - waiting(); }

  void ask(std::string path);  // only while there is room
  void take(PreparedImage&
                image);  // the oldest, once it is there; the memory `image` brings is used again

 private:
  struct Slot {
    PreparedImage image;
    std::exception_ptr failure;  // not the image's fault: out of memory
    bool ready = false;
  };

  void start();
  void work();
  void prepare(PreparedImage& image) const;
  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  const Augmenter& augmenter_;
  int64_t wanted_threads_;
  std::vector<std::thread> threads_;
  int64_t taken_ = 0;  // only the user's thread touches it

  std::mutex mutex_;  // guards all below; a slot that is being filled is its thread's alone
  std::condition_variable asked_for_;
  std::condition_variable done_;
  std::vector<Slot> slots_;  // image n is in slot n % size
  int64_t asked_ = 0;        // written by the user's thread alone
  int64_t begun_ = 0;
  bool stopping_ = false;
};

}  // namespace rondo
