// Continuous batching for one language model: sequences join and leave between steps, a step reads
// the weights once for all of them, and prompts are processed in pieces between steps, so that a
// long prompt slows the others down by a bounded share. A sequence's results do not depend on the
// others: its prompt is split into pieces at fixed offsets.
#pragma once

#include <functional>
#include <list>

#include "rondo/http/api_error.h"
#include "rondo/infer/sampler.h"
#include "rondo/infer/session.h"
#include "rondo/model/recent_tokens.h"
#include "rondo/serve/engine.h"
#include "rondo/serve/metrics.h"

namespace rondo::serve {

// A source of a sequence's tokens that may not all be available yet.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // The next piece of `count` tokens (fewer only at the end); empty: not yet available, or the end.
  virtual std::vector<int32_t> take(size_t count) = 0;
  virtual bool at_end() const = 0;
};

class Sequence;

// Receives the events of a sequence. May throw: the sequence then fails.
class SequenceOwner {
 public:
  virtual ~SequenceOwner() = default;
  // The prompt has been processed. Return false if nothing is to be generated.
  virtual bool prompt_read(Sequence& sequence) = 0;
  // A prompt token, if prompts are scored; `logits` are those that predict it (empty: none).
  virtual void token_scored(Sequence& sequence, int64_t token,
                            const std::vector<float>& logits) = 0;
  // A token was generated. Return false if it is the last.
  virtual bool token_written(Sequence& sequence, int64_t token,
                             const std::vector<float>& logits) = 0;
  // Whether the client is not keeping up and the sequence must skip this step.
  virtual bool must_wait(const Sequence& sequence) = 0;
  // The sequence has ended; its row is removed next.
  virtual void sequence_over(Sequence& sequence) = 0;
  virtual void sequence_failed(Sequence& sequence, const http::ApiError& error) = 0;
};

// One text, in one row of the session.
class Sequence {
 public:
  Sequence(SequenceOwner& its_owner, size_t its_index, const SamplerOptions& options)
      : owner(its_owner), index(its_index), sampler(options) {}

  SequenceOwner& owner;
  const size_t index;  // among the owner's sequences
  std::vector<int32_t> prompt;
  TokenSource* source = nullptr;  // instead of `prompt`
  bool score_prompt = false;      // token by token
  bool settle = false;            // also process the last generated token, for the state after it

  Sampler sampler;
  RecentTokens recent;
  Session::RowId row = -1;
  int64_t position = 0;  // tokens of the document processed so far

 private:
  friend class LanguageScheduler;
  size_t read_ = 0;     // tokens of the prompt
  int64_t pieces_ = 0;  // processed so far
  bool over_ = false;
};

class LanguageScheduler : public Worker {
 public:
  LanguageScheduler(std::shared_ptr<const CompiledLanguageModel> model, int64_t start_token,
                    Metrics& metrics);

  // Adds a row that continues from `state`, processes its prompt and then generates.
  void add(Sequence& sequence, const State& state);
  // `copy` continues generating from the current position of `sequence`.
  void fork(const Sequence& sequence, Sequence& copy);
  void remove(Sequence& sequence);
  // Its current state, including recent tokens.
  State state_of(const Sequence& sequence) const;

  bool work() override;

  // Tokens processed at once.
  size_t piece() const { return piece_; }
  const Session& session() const { return session_; }

 private:
  bool read_some();
  bool read_piece(Sequence& sequence);
  void begin_writing(Sequence& sequence);
  bool step();
  void finish_step(Sequence& sequence);
  // Runs `work`; if it throws, the sequence fails: with an ApiError as it is, with any other
  // exception as error 500. Returns whether it did not throw.
  bool guarded(Sequence& sequence, const std::function<void()>& work);
  bool next_token(Sequence& sequence, std::vector<Session::Token>& tokens);
  void fail(Sequence& sequence, const std::exception& error);
  void sweep();

  Session session_;
  int64_t start_token_;
  Metrics& metrics_;
  size_t piece_;
  std::list<Sequence*> readers_;
  std::list<Sequence*> writers_;
  double debt_ = 0;  // seconds of prompt processing to be made up for by steps
};

}  // namespace rondo::serve
