// Classifies waiting images in batches.
#pragma once

#include "rondo/infer/classifier.h"
#include "rondo/serve/engine.h"
#include "rondo/serve/metrics.h"

namespace rondo::serve {

class ClassifyBatcher;

class ClassifyTask : public Task {
 public:
  // Called on the engine's thread with the most likely classes, and the pixels for further
  // analysis.
  using Tell = std::function<void(const Prediction&, const std::vector<float>& pixels)>;
  // `pixels`: as produced by Classifier::prepare().
  ClassifyTask(std::vector<float> pixels, int64_t top, std::shared_ptr<http::Exchange> exchange,
               ClassifyBatcher& batcher, Tell tell)
      : pixels_(std::move(pixels)),
        top_(top),
        exchange_(std::move(exchange)),
        batcher_(batcher),
        tell_(std::move(tell)) {}

  bool abandoned() const override { return exchange_->gone(); }
  void start() override;
  void stop() override;
  bool done() const override { return done_; }
  void fail(const http::ApiError& error) override;

 private:
  friend class ClassifyBatcher;
  std::vector<float> pixels_;
  int64_t top_;
  std::shared_ptr<http::Exchange> exchange_;
  ClassifyBatcher& batcher_;
  Tell tell_;
  bool done_ = false;
};

class ClassifyBatcher : public Worker {
 public:
  ClassifyBatcher(const Classifier& classifier, Metrics& metrics)
      : classifier_(classifier), metrics_(metrics) {}
  bool work() override;

 private:
  friend class ClassifyTask;
  const Classifier& classifier_;
  Metrics& metrics_;
  std::list<ClassifyTask*> waiting_;
};

}  // namespace rondo::serve
