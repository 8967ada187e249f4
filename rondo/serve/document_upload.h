// A document of any length that becomes a saved state while it is uploaded: tokenized as it
// arrives, processed in pieces between steps, and paused when the model cannot keep up.
#pragma once

#include "rondo/serve/served_models.h"
#include "rondo/serve/state_store.h"

namespace rondo::serve {

class DocumentUpload : public http::BodySink,
                       public TokenSource,
                       public Task,
                       public SequenceOwner {
 public:
  // Continues from `from`, or starts a new document.
  DocumentUpload(std::string name, std::shared_ptr<http::Exchange> exchange,
                 ServedLanguageModel& model, StateStore& states, Engine& engine, State from);

  // Called by the HTTP threads.
  bool write(std::string_view data, const std::function<void()>& resume) override;
  void finish() override;
  void abandon() override { abandoned_ = true; }

  // Called by the engine's thread.
  std::vector<int32_t> take(size_t count) override;
  bool at_end() const override;

  bool abandoned() const override { return abandoned_ || exchange_->gone(); }
  void start() override;
  void stop() override;
  bool done() const override { return done_; }
  // Documents of any length: only a sender that stalls is cut off, by its connection.
  bool has_deadline() const override { return false; }
  void fail(const http::ApiError& error) override;

 private:
  bool prompt_read(Sequence& sequence) override;
  void token_scored(Sequence&, int64_t, const std::vector<float>&) override {}
  bool token_written(Sequence&, int64_t, const std::vector<float>&) override { return false; }
  bool must_wait(const Sequence&) override { return false; }
  void sequence_over(Sequence&) override { done_ = true; }
  void sequence_failed(Sequence&, const http::ApiError& error) override { fail(error); }
  void tokenize(bool last);

  std::string name_;
  std::shared_ptr<http::Exchange> exchange_;
  ServedLanguageModel& model_;
  StateStore& states_;
  Engine& engine_;
  State from_;
  Sequence sequence_;
  bool done_ = false;
  std::atomic<bool> abandoned_{false};

  mutable std::mutex mutex_;
  std::string text_;  // not yet tokenized
  std::deque<int32_t> tokens_;
  bool ended_ = false;
  std::function<void()> resume_;  // set while the sender is paused
};

}  // namespace rondo::serve
