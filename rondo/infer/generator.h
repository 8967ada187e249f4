// Writing one document with a language model, for as long as asked, in constant memory and constant
// time per token: prompts are read many tokens at once, then tokens are sampled one by one. Exactly
// what the model would compute on the whole text.
//
// One thread at a time may use a generator; generators of one model may run in different threads.
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

  // Reads tokens without writing.
  void read(const std::vector<int32_t>& tokens);
  // Writes the next token. If nothing was read yet, `start` is read first.
  int64_t write(Sampler& sampler, int64_t start);

  // The state after all tokens read and written so far, the last written one included.
  State state();
  int64_t position() const { return position_; }
  // The document's last tokens, read or written, for a sampler to remember.
  const std::deque<int64_t>& recent() const { return recent_.tokens(); }

 private:
  // Reads the token that was written last, if the model has not yet.
  void settle();

  Session session_;
  Session::RowId row_;
  int64_t pending_ = -1;  // written, not yet read by the model
  int64_t position_;
  RecentTokens recent_;
};

}  // namespace rondo
