// Planning batches, preparing their rows in threads, and returning them in order.
#include "rondo/image/worker_pool.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iterator>
#include <system_error>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/memory_limit.h"
#include "rondo/base/random.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr int64_t kMaxReplacements = 100;

// Signals are left to the thread waiting in next(), whose handlers and system calls expect them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

ImageLoader::WorkerPool::WorkerPool(const ImageSet& images, const AugmentConfig& augment,
                                    const LoaderOptions& options)
    : images_(images),
      config_(augment),
      options_(options),
      augmenter_(augment, options.side),
      slots_(static_cast<size_t>(std::max<int64_t>(0, options.ahead))) {
  require(options.rows >= 1 && options.ahead >= 1,
          "image loader: expected at least 1 batch of 1 image, got {} of {}", options.ahead,
          options.rows);
  require(options.shard.rank >= 0 && options.shard.rank < options.shard.size,
          "image loader: expected a rank below {}, got {}", options.shard.size, options.shard.rank);
  require(options.threads >= 0, "image loader: expected 0 or more threads, got {}",
          options.threads);
  const int64_t pixels = saturating_product(options.side, options.side, 3 * sizeof(float));
  require_memory(saturating_product(pixels, options.rows, options.ahead),
                 fmt::format("{} batches of {} images of {} x {} pixels, prepared ahead",
                             options.ahead, with_commas(options.rows), options.side, options.side),
                 "choose a smaller batch (train.batch) or smaller images (model.image)");
  if (images.count() == 0) {
    throw Error(ExitCode::bad_input, "the set of images is empty", "use a set with images");
  }
}

void ImageLoader::WorkerPool::start() {
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  const int64_t wanted = std::max<int64_t>(1, options_.threads > 0 ? options_.threads : cores);
  const SignalsBlocked blocked;
  for (int64_t i = 0; i < wanted; ++i) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      if (threads_.empty()) {
        throw Error(ExitCode::failure, fmt::format("cannot start a thread: {}", error.what()));
      }
      return;  // make do with fewer
    }
  }
}

void ImageLoader::WorkerPool::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  task_there_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
  stopping_ = false;
}

void ImageLoader::WorkerPool::seek(int64_t batch) {
  stop();
  for (Slot& slot : slots_) {
    slot.ready = false;
    slot.failure = nullptr;
  }
  begun_at_ = batch;
  taken_ = 0;
  planned_ = 0;
}

const std::vector<int64_t>& ImageLoader::WorkerPool::order_of(int64_t epoch) {
  if (epoch != order_epoch_) {
    order_ =
        counter_permutation(images_.count(), options_.seed, "images", static_cast<uint64_t>(epoch));
    order_epoch_ = epoch;
  }
  return order_;
}

// Chooses the images of the next batch and queues its rows as tasks; false if all slots are taken
// or there is no next batch. Requires the lock.
bool ImageLoader::WorkerPool::plan_batch() {
  const int64_t count = images_.count();
  if (planned_ - taken_ >= options_.ahead ||
      (!options_.training && number_of(planned_) >= batches())) {
    return false;
  }
  Slot& slot = slots_[static_cast<size_t>(planned_ % options_.ahead)];
  ImageBatch& batch = slot.batch;
  const int64_t first = number_of(planned_) * options_.rows;
  batch.rows = options_.training ? options_.rows : std::min(options_.rows, count - first);
  batch.side = options_.side;
  const auto rows = static_cast<size_t>(batch.rows);
  batch.pixels.resize(rows * static_cast<size_t>(3 * options_.side * options_.side));
  batch.labels.assign(rows, 0);
  batch.index.assign(rows, 0);
  batch.epoch = first / count;
  batch.mix = {};
  batch.bad.clear();
  slot.number = number_of(planned_++);
  slot.unfinished = batch.rows;
  slot.bad.assign(rows, {});
  slot.lost.assign(rows, 0);
  slot.failure = nullptr;
  slot.ready = false;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t place = first + row;
    batch.index[static_cast<size_t>(row)] =
        options_.training
            ? order_of(place / count)[static_cast<size_t>(place % count / config_.repeats)]
            : place;
    tasks_.push_back({&slot, row});
  }
  return true;
}

void ImageLoader::WorkerPool::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    task_there_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) {
      return;
    }
    const Task task = tasks_.front();
    tasks_.pop_front();
    Slot& slot = *task.slot;
    lock.unlock();
    std::exception_ptr failure;
    try {
      make_row(slot, task.row);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && (!slot.failure || task.row < slot.failed_row)) {
      slot.failure = failure;
      slot.failed_row = task.row;
    }
    if (--slot.unfinished > 0) {
      continue;
    }
    lock.unlock();
    try {
      if (!slot.failure) {
        finish(slot);
      }
    } catch (...) {
      slot.failure = std::current_exception();
    }
    lock.lock();
    slot.ready = true;
    batch_ready_.notify_all();
  }
}

// Reads and augments the image into its row. False if it cannot be read, which is recorded.
bool ImageLoader::WorkerPool::try_row(Slot& slot, int64_t row, int64_t index) const {
  const auto at = static_cast<size_t>(row);
  float* out =
      slot.batch.pixels.data() + at * static_cast<size_t>(3 * options_.side * options_.side);
  try {
    if (options_.training) {
      const int64_t place = slot.number * options_.rows + row;
      CounterRandom random(options_.seed, "image augmentation",
                           static_cast<uint64_t>(place / images_.count()),
                           static_cast<uint64_t>(place % images_.count()));
      augmenter_.train([&](const EnoughSide& enough) { return images_.load(index, enough); },
                       random, out);
    } else {
      augmenter_.evaluate(images_.load(index), out);
    }
  } catch (const Error& error) {
    if (options_.strict) {
      throw;
    }
    slot.bad[at].push_back({index, images_.name(index), error.message()});
    return false;
  }
  slot.batch.index[at] = index;
  slot.batch.labels[at] = images_.label(index);
  return true;
}

void ImageLoader::WorkerPool::make_row(Slot& slot, int64_t row) const {
  const auto at = static_cast<size_t>(row);
  int64_t index = slot.batch.index[at];
  if (!options_.training) {
    slot.lost[at] = try_row(slot, row, index) ? 0 : 1;
    return;
  }
  while (!try_row(slot, row, index)) {
    const auto tried = static_cast<int64_t>(slot.bad[at].size());
    if (tried >= std::min(kMaxReplacements, images_.count())) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{} consecutive images cannot be read; the first: {}", tried,
                              slot.bad[at].front().reason),
                  "'rondo data check' lists all of them");
    }
    index = (index + 1) % images_.count();
  }
}

// Completes a batch once all rows are done; called by the thread that finished the last one.
void ImageLoader::WorkerPool::finish(Slot& slot) const {
  ImageBatch& batch = slot.batch;
  for (std::vector<BadImage>& bad : slot.bad) {
    std::move(bad.begin(), bad.end(), std::back_inserter(batch.bad));
  }
  if (options_.training) {
    CounterRandom random(options_.seed, "image mixing", static_cast<uint64_t>(slot.number));
    batch.mix = draw_mix(config_, batch.side, random);
    apply_mix(batch.mix, batch.pixels.data(), batch.rows, batch.side);
    return;
  }
  const auto image = static_cast<size_t>(3 * batch.side * batch.side);
  size_t kept = 0;
  for (size_t row = 0; row < slot.lost.size(); ++row) {
    if (slot.lost[row] != 0) {
      continue;
    }
    if (kept != row) {
      std::memcpy(batch.pixels.data() + kept * image, batch.pixels.data() + row * image,
                  image * sizeof(float));
      batch.labels[kept] = batch.labels[row];
      batch.index[kept] = batch.index[row];
    }
    ++kept;
  }
  batch.rows = static_cast<int64_t>(kept);
  batch.pixels.resize(kept * image);
  batch.labels.resize(kept);
  batch.index.resize(kept);
}

void ImageLoader::WorkerPool::report(const ImageBatch& batch) {
  for (const BadImage& bad : batch.bad) {
    if (warned_.insert(bad.index).second) {
      log_warn("{} (image skipped)", bad.reason);
    }
  }
}

bool ImageLoader::WorkerPool::next(ImageBatch& out) {
  if (!options_.training && number_of(taken_) >= batches()) {
    return false;
  }
  if (threads_.empty()) {
    start();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  while (plan_batch()) {
  }
  task_there_.notify_all();
  Slot& slot = slots_[static_cast<size_t>(taken_ % options_.ahead)];
  batch_ready_.wait(lock, [&] { return slot.ready; });
  if (slot.failure) {
    std::rethrow_exception(slot.failure);
  }
  std::swap(out, slot.batch);
  slot.ready = false;
  ++taken_;
  while (plan_batch()) {  // the slot is free: prepare more while the caller computes
  }
  lock.unlock();
  task_there_.notify_all();
  report(out);
  return true;
}

}  // namespace rondo
