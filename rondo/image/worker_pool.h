// The threads behind ImageLoader. A ring of slots holds the batches in progress; a task is one row.
// Internal to ImageLoader.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "rondo/image/pipeline.h"

namespace rondo {

class ImageLoader::WorkerPool {
 public:
  WorkerPool(const ImageSet& images, const AugmentConfig& augment, const LoaderOptions& options);
  ~WorkerPool() { stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  bool next(ImageBatch& out);
  void seek(int64_t batch);

  const ImageSet& images() const { return images_; }
  const AugmentConfig& config() const { return config_; }
  const LoaderOptions& options() const { return options_; }
  const Augmenter& augmenter() const { return augmenter_; }
  // Batches of all shards so far.
  int64_t passed() const { return begun_at_ + taken_ * options_.shard.size; }
  int64_t skipped() const { return static_cast<int64_t>(warned_.size()); }
  int64_t batches() const { return (images_.count() + options_.rows - 1) / options_.rows; }

 private:
  // A batch in progress. Its rows are filled without the lock, each by one thread.
  struct Slot {
    ImageBatch batch;
    int64_t number = 0;
    int64_t unfinished = 0;                  // rows
    std::vector<std::vector<BadImage>> bad;  // [rows]
    std::vector<uint8_t> lost;               // [rows]; evaluation: 1 if the row could not be read
    std::exception_ptr failure;              // of the first failed row
    int64_t failed_row = 0;
    bool ready = false;
  };
  struct Task {
    Slot* slot = nullptr;
    int64_t row = 0;
  };

  void start();
  void stop();
  void work();
  bool plan_batch();
  void make_row(Slot& slot, int64_t row) const;
  bool try_row(Slot& slot, int64_t row, int64_t index) const;
  void finish(Slot& slot) const;
  void report(const ImageBatch& batch);
  const std::vector<int64_t>& order_of(int64_t epoch);
  // The index of our n-th batch among those of all shards.
  int64_t number_of(int64_t n) const {
    return begun_at_ + n * options_.shard.size + options_.shard.rank;
  }

  const ImageSet& images_;
  AugmentConfig config_;
  LoaderOptions options_;
  Augmenter augmenter_;

  // Used only by the thread that calls next().
  int64_t begun_at_ = 0;  // batches of all shards before our first
  int64_t taken_ = 0;     // batches returned
  std::set<int64_t> warned_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards all below
  std::condition_variable task_there_;
  std::condition_variable batch_ready_;
  std::vector<Slot> slots_;  // batch n is made in slot n % ahead
  std::deque<Task> tasks_;
  int64_t planned_ = 0;  // batches whose tasks have been queued
  bool stopping_ = false;
  int64_t order_epoch_ = -1;
  std::vector<int64_t> order_;  // of order_epoch_
};

}  // namespace rondo
