// Translates waiting requests in batches: lines of several requests together, a bounded number at a
// time.
#pragma once

#include "rondo/infer/translator.h"
#include "rondo/serve/engine.h"
#include "rondo/serve/metrics.h"

namespace rondo::serve {

struct TranslateRequest {
  std::vector<std::string> lines;
  int64_t beam = 5;
  int64_t n_best = 1;
};

class TranslateBatcher;

class TranslateTask : public Task {
 public:
  using Tell = std::function<void(const std::vector<Translation>&)>;
  // `tell` receives the translations of all lines, in order.
  TranslateTask(TranslateRequest request, std::shared_ptr<http::Exchange> exchange,
                TranslateBatcher& batcher, Tell tell)
      : request_(std::move(request)),
        exchange_(std::move(exchange)),
        batcher_(batcher),
        tell_(std::move(tell)) {}

  bool abandoned() const override { return exchange_->gone(); }
  void start() override;
  void stop() override;
  bool done() const override { return done_; }
  void fail(const http::ApiError& error) override;

 private:
  friend class TranslateBatcher;
  TranslateRequest request_;
  std::shared_ptr<http::Exchange> exchange_;
  TranslateBatcher& batcher_;
  Tell tell_;
  std::vector<Translation> results_;
  size_t taken_ = 0;  // lines already in a batch
  bool done_ = false;
};

class TranslateBatcher : public Worker {
 public:
  TranslateBatcher(std::shared_ptr<const CompiledTranslationModel> model, PairTokenizers tokenizers,
                   Metrics& metrics);
  bool work() override;

 private:
  friend class TranslateTask;
  const Translator& translator(int64_t beam, int64_t n_best);

  std::shared_ptr<const CompiledTranslationModel> model_;
  PairTokenizers tokenizers_;
  Metrics& metrics_;
  std::map<std::pair<int64_t, int64_t>, std::unique_ptr<Translator>> translators_;
  std::list<TranslateTask*> waiting_;
};

}  // namespace rondo::serve
