// Batching of images.
#include "rondo/serve/classify_batcher.h"

#include <algorithm>

#include "rondo/base/log.h"

namespace rondo::serve {
namespace {

constexpr size_t kImagesTogether = 8;

}  // namespace

void ClassifyTask::start() { batcher_.waiting_.push_back(this); }

void ClassifyTask::stop() {
  batcher_.waiting_.remove(this);
  done_ = true;
}

void ClassifyTask::fail(const http::ApiError& error) {
  exchange_->reply(error.response());
  done_ = true;
}

bool ClassifyBatcher::work() {
  if (waiting_.empty()) return false;
  std::vector<ClassifyTask*> batch;
  std::vector<float> pixels;
  int64_t top = 1;
  while (!waiting_.empty() && batch.size() < kImagesTogether) {
    ClassifyTask* task = waiting_.front();
    waiting_.pop_front();
    pixels.insert(pixels.end(), task->pixels_.begin(), task->pixels_.end());
    top = std::max(top, task->top_);
    batch.push_back(task);
  }
  try {
    const std::vector<Prediction> found =
        classifier_.classify(pixels.data(), static_cast<int64_t>(batch.size()), top);
    for (size_t i = 0; i < batch.size(); ++i) {
      Prediction prediction = found[i];
      const auto wanted = static_cast<size_t>(batch[i]->top_);
      if (prediction.size() > wanted) prediction.resize(wanted);
      batch[i]->tell_(prediction, batch[i]->pixels_);
      batch[i]->done_ = true;
    }
    metrics_.classified_images += static_cast<int64_t>(batch.size());
  } catch (const std::exception& error) {
    log_error("classification: {}", error.what());
    for (ClassifyTask* task : batch) {
      if (!task->done_) task->fail(http::ApiError(500, "the image could not be classified"));
    }
  }
  return true;
}

}  // namespace rondo::serve
