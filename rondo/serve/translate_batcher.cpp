// Batching of lines.
#include "rondo/serve/translate_batcher.h"

#include "rondo/base/log.h"

namespace rondo::serve {
namespace {

constexpr size_t kLinesTogether = 16;

}  // namespace

void TranslateTask::start() { batcher_.waiting_.push_back(this); }

void TranslateTask::stop() {
  batcher_.waiting_.remove(this);
  done_ = true;
}

void TranslateTask::fail(const http::ApiError& error) {
  exchange_->reply(error.response());
  done_ = true;
}

TranslateBatcher::TranslateBatcher(std::shared_ptr<const CompiledTranslationModel> model,
                                   PairTokenizers tokenizers, Metrics& metrics)
    : model_(std::move(model)), tokenizers_(std::move(tokenizers)), metrics_(metrics) {}

const Translator& TranslateBatcher::translator(int64_t beam, int64_t n_best) {
  std::unique_ptr<Translator>& found = translators_[{beam, n_best}];
  if (found == nullptr) {
    TranslatorOptions options;
    options.beam.beam = beam;
    options.beam.n_best = n_best;
    found = std::make_unique<Translator>(model_, tokenizers_, options);
  }
  return *found;
}

bool TranslateBatcher::work() {
  if (waiting_.empty()) return false;
  const TranslateRequest& wanted = waiting_.front()->request_;
  std::vector<std::string> lines;
  std::vector<TranslateTask*> whose;
  for (TranslateTask* task : waiting_) {
    TranslateRequest& r = task->request_;
    if (r.beam != wanted.beam || r.n_best != wanted.n_best) continue;
    while (task->taken_ < r.lines.size() && lines.size() < kLinesTogether) {
      lines.push_back(std::move(r.lines[task->taken_++]));
      whose.push_back(task);
    }
  }
  try {
    const std::vector<Translation> done = translator(wanted.beam, wanted.n_best).translate(lines);
    for (size_t i = 0; i < done.size(); ++i) whose[i]->results_.push_back(done[i]);
    metrics_.translated_lines += static_cast<int64_t>(done.size());
  } catch (const std::exception& error) {
    log_error("translation: {}", error.what());
    for (TranslateTask* task : whose) {
      if (!task->done()) task->fail(http::ApiError(500, "the text could not be translated"));
    }
  }
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    TranslateTask& task = **at;
    const bool complete = task.results_.size() == task.request_.lines.size();
    if (complete && !task.done_) {
      try {
        task.tell_(task.results_);
        task.done_ = true;
      } catch (const std::exception& error) {
        log_error("translation: {}", error.what());
        task.fail(http::ApiError(500, "the text could not be translated"));
      }
    }
    at = task.done_ ? waiting_.erase(at) : std::next(at);
  }
  return true;
}

}  // namespace rondo::serve
