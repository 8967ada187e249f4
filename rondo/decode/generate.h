// Writing with a language model, for as long as asked, in constant memory and constant time per
// token. Reads prompts of any length in blocks, then steps token by token.
#pragma once

#include "rondo/decode/sampler.h"
#include "rondo/decode/step_loop.h"
#include "rondo/model/language_model.h"
#include "rondo/model/recent_tokens.h"

namespace rondo {

// One document being read and written. Exactly what the model would compute on the whole text.
class Writer {
 public:
  // Continues from `state` (empty: a new document). `weights`: of the model, to share them between
  // writers or to keep them in fewer bits; null = packed in fp32 when needed.
  explicit Writer(std::shared_ptr<LanguageModel> model, State state = {},
                  std::shared_ptr<const StepWeights> weights = nullptr);
  Writer(const Writer&) = delete;  // a copy would write into the same buffers: copy state() instead
  Writer& operator=(const Writer&) = delete;

  // Reads tokens without writing: whole segments at once, the rest too.
  void read(const std::vector<int32_t>& tokens);
  // Writes the next token. If nothing was read yet, `start` is read first.
  int64_t write(Sampler& sampler, int64_t start);

  // The state after all tokens read and written so far, the last written one included.
  State state();
  int64_t position() const { return position_; }
  // The document's last tokens, read or written, for a sampler to remember.
  const std::deque<int64_t>& recent() const { return recent_.tokens(); }

 private:
  void feed(int64_t token);
  // Buffers for stepping, or a state for reading: whichever is current.
  void to_steps();
  void to_state();

  std::shared_ptr<LanguageModel> model_;
  std::shared_ptr<const StepWeights> weights_;
  std::unique_ptr<StepLoop> loop_;  // null where plain operations are wanted, and before they start
  State state_;
  StepCaches caches_;
  bool stepping_ = false;
  std::vector<float> logits_;  // after the last token read; empty when none was
  int64_t pending_ = -1;       // written, not yet read by the model
  int64_t position_ = 0;
  RecentTokens recent_;
};

}  // namespace rondo
