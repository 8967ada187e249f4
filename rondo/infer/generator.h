// Generates one document of any length with a language model, in constant memory and constant time
// per token: prompts are processed many tokens at once, then tokens are sampled one by one. Results
// are exactly those of the model on the whole text.
//
// Only one thread at a time may use a generator; generators of one model may run concurrently.
#pragma once

#include "rondo/infer/sampler.h"
#include "rondo/infer/session.h"
#include "rondo/model/recent_tokens.h"

namespace rondo {

class Generator {
 public:
  // Continues from `state` (empty: a new document).
  explicit Generator(std::shared_ptr<const CompiledLanguageModel> model, const State& state = {});
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Appends tokens to the document.
  void read(const std::vector<int32_t>& tokens);
  // Generates the next token. In an empty document, `start` is appended first.
  int64_t write(Sampler& sampler, int64_t start);

  // The state after all tokens so far, including the last generated one.
  State state();
  int64_t position() const { return position_; }
  // The document's last tokens, for a sampler to remember.
  const std::deque<int64_t>& recent() const { return recent_.tokens(); }

 private:
  // Feeds the last generated token to the model, if not yet done.
  void settle();

  Session session_;
  Session::RowId row_;
  int64_t pending_ = -1;  // generated, but not yet fed to the model
  int64_t position_;
  RecentTokens recent_;
};

}  // namespace rondo
