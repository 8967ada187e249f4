// The threads of ImageReadAhead.
#include "rondo/image/read_ahead.h"

#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <system_error>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/image/decode.h"
#include "rondo/image/sources.h"

namespace rondo {

ImageReadAhead::ImageReadAhead(const Augmenter& augmenter, int64_t threads, int64_t most)
    : augmenter_(augmenter),
      wanted_threads_(threads),
      slots_(static_cast<size_t>(std::max<int64_t>(0, most))) {
  require(threads >= 0 && most >= 1,
          "reading ahead: expected at least 1 image and 0 or more threads, got {} and {}", most,
          threads);
  if (threads == 0) {
    const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
    wanted_threads_ = std::max<int64_t>(1, cores);
  }
}

ImageReadAhead::~ImageReadAhead() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  asked_for_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

// Starts another thread if there are enough images: a few files do not need a hundred threads.
void ImageReadAhead::start() {
  if (static_cast<int64_t>(threads_.size()) >= std::min(wanted_threads_, waiting())) {
    return;
  }
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    if (threads_.empty()) {
      throw Error(ExitCode::failure, fmt::format("cannot start a thread: {}", error.what()));
    }
    wanted_threads_ = static_cast<int64_t>(threads_.size());  // make do with fewer
  }
}

void ImageReadAhead::ask(std::string path) {
  require(room() > 0, "reading ahead: {} images are already waiting: take one first", waiting());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Slot& next = slot(asked_++);
    next.image.path = std::move(path);
    next.failure = nullptr;
    next.ready = false;
  }
  start();
  asked_for_.notify_one();
}

void ImageReadAhead::take(PreparedImage& image) {
  require(waiting() > 0, "reading ahead: no image was requested");
  std::unique_lock<std::mutex> lock(mutex_);
  Slot& oldest = slot(taken_);
  done_.wait(lock, [&] { return oldest.ready; });
  ++taken_;
  if (oldest.failure) {
    std::rethrow_exception(oldest.failure);
  }
  std::swap(image, oldest.image);
}

void ImageReadAhead::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    asked_for_.wait(lock, [this] { return stopping_ || begun_ < asked_; });
    if (stopping_) {
      return;
    }
    Slot& mine = slot(begun_++);
    lock.unlock();
    std::exception_ptr failure;
    try {
      prepare(mine.image);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    mine.failure = failure;
    mine.ready = true;
    done_.notify_one();
  }
}

void ImageReadAhead::prepare(PreparedImage& image) const {
  const std::string& path = image.path;
  image.error.clear();
  image.pixels.resize(static_cast<size_t>(3 * augmenter_.side() * augmenter_.side()));
  try {
    if (path.find('\0') != std::string::npos) {  // the system would open the path up to it
      throw Error(ExitCode::bad_input, fmt::format("{}: not a valid path: it contains a zero byte",
                                                   printable(path, PATH_MAX)));
    }
    augmenter_.evaluate(decode_image(read_text_file(path, kMaxImageFileBytes), path),
                        image.pixels.data());
  } catch (const Error& error) {
    image.error = error.message();
  }
}

}  // namespace rondo
