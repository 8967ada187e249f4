// Completions in OpenAI's JSON format for texts and chats, whole or as a stream of events.
// Model-independent.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rondo/http/completion_request.h"

namespace rondo::http {

// The log-probability of a token, and the alternatives.
struct TokenLogprob {
  std::string text;   // complete characters; U+FFFD for partial ones
  bool known = true;  // false for the first token of a document, which has no context
  double logprob = 0;
  std::vector<std::pair<std::string, double>> top;  // most likely first
};

struct Usage {
  int64_t prompt_tokens = 0;  // including those from a state
  int64_t cached_tokens = 0;  // of those, already processed
  int64_t completion_tokens = 0;
};

// Formats the texts of one request. Use from one thread at a time.
class CompletionReply {
 public:
  CompletionReply(std::shared_ptr<Exchange> exchange, const CompletionRequest& request,
                  std::string model, std::string id, int64_t created, uint64_t seed);

  // Appends to text `choice`; sent immediately if streaming.
  void text(size_t choice, const std::string& text, const std::vector<TokenLogprob>& logprobs);
  // "stop" or "length".
  void finish(size_t choice, const std::string& reason);
  // Contribution of the recurrent state to tokens from `first` on: differences of log-probability.
  void state_gain(size_t choice, int64_t first, const std::vector<double>& gains);
  // Call after all texts are finished.
  void end(const Usage& usage);
  void fail(const ApiError& error);

  const std::shared_ptr<Exchange>& exchange() const { return exchange_; }

 private:
  struct Choice {
    std::string text;
    std::vector<TokenLogprob> logprobs;
    std::vector<double> gains;
    std::string reason;
    int64_t offset = 0;  // characters sent so far
  };
  void begin();
  void send_chunk(size_t choice, const std::string& text, const std::string& logprobs,
                  const std::string& reason);
  std::string logprobs_json(const std::vector<TokenLogprob>& tokens, int64_t& offset) const;
  std::string choice_json(size_t index);
  std::string head(const char* kind) const;

  std::shared_ptr<Exchange> exchange_;
  bool chat_;
  bool stream_;
  bool include_usage_;
  bool with_logprobs_;
  std::string model_;
  std::string id_;
  int64_t created_;
  uint64_t seed_;
  bool begun_ = false;
  std::vector<Choice> choices_;
};

std::string usage_json(const Usage& usage);

}  // namespace rondo::http
