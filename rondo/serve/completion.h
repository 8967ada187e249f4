// One request for text: processes its prompts, generates, and streams the reply.
#pragma once

#include "rondo/http/completion_reply.h"
#include "rondo/http/text_output.h"
#include "rondo/serve/served_models.h"
#include "rondo/serve/state_gain.h"
#include "rondo/serve/state_store.h"

namespace rondo::serve {

class Completion : public Task, public SequenceOwner {
 public:
  // Tokenizes prompts and looks up the state. ApiError for unknown tokens or states.
  Completion(const http::CompletionRequest& request, std::shared_ptr<http::Exchange> exchange,
             ServedLanguageModel& model, StateStore& states, const Limits& limits,
             Metrics& metrics);
  ~Completion() override;

  int64_t sequences() const override { return static_cast<int64_t>(choices_.size()); }
  bool abandoned() const override { return reply_.exchange()->gone(); }
  void start() override;
  void stop() override;
  bool done() const override { return done_; }
  void fail(const http::ApiError& error) override;

 private:
  struct Choice {
    Choice(SequenceOwner& owner, size_t index, const SamplerOptions& options,
           const std::vector<std::string>& stop)
        : sequence(owner, index, options), output(stop) {}
    Sequence sequence;
    http::TextOutput output;
    std::vector<http::TokenLogprob> logprobs;  // of tokens whose text is held back
    int64_t written = 0;
    std::string reason;
    std::unique_ptr<StateGain> gain;
    bool over = false;
  };

  bool prompt_read(Sequence& sequence) override;
  void token_scored(Sequence& s, int64_t token, const std::vector<float>& logits) override;
  bool token_written(Sequence& s, int64_t token, const std::vector<float>& logits) override;
  bool must_wait(const Sequence& sequence) override;
  void sequence_over(Sequence& sequence) override;
  void sequence_failed(Sequence& sequence, const http::ApiError& error) override;

  std::vector<int32_t> tokens_of(const http::CompletionRequest::Prompt& prompt) const;
  void begin_choice(Choice& choice);
  void tell_gain(Choice& choice, bool all);
  std::string token_text(int64_t token) const;
  http::TokenLogprob logprob_of(int64_t token, const std::vector<float>& logits) const;
  void end();

  http::CompletionRequest request_;
  ServedLanguageModel& model_;
  StateStore& states_;
  Metrics& metrics_;
  http::CompletionReply reply_;
  SavedState from_;
  bool has_state_ = false;
  int64_t end_token_;
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<std::unique_ptr<Choice>> choices_;  // n for the first prompt, n for the second, ...
  int64_t left_ = 0;                              // unfinished choices
  bool done_ = false;
};

}  // namespace rondo::serve
