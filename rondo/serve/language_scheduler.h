// Continuous batching of one language model: texts join and leave between steps, a step reads the
// weights once for all of them, and prompts are read in pieces between steps, so that a long one
// slows the others down by a bounded share. What a text computes depends on nothing but itself:
// pieces are cut by their number in its own prompt.
#pragma once

#include <list>

#include "rondo/http/api_error.h"
#include "rondo/infer/sampler.h"
#include "rondo/infer/session.h"
#include "rondo/model/recent_tokens.h"
#include "rondo/serve/engine.h"
#include "rondo/serve/metrics.h"

namespace rondo::serve {

// Where a sequence's tokens come from, beyond those at hand.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // The next piece of `count` tokens (fewer only at the end); empty: not there yet, or the end.
  virtual std::vector<int32_t> take(size_t count) = 0;
  virtual bool at_end() const = 0;
};

class Sequence;

// Who a sequence belongs to. May throw: the sequence is then failed.
class SequenceOwner {
 public:
  virtual ~SequenceOwner() = default;
  // Its prompt has been read. False: that was all.
  virtual bool prompt_read(Sequence& sequence) = 0;
  // A token of the prompt, where each is scored; logits are those before it (empty: none).
  virtual void token_scored(Sequence& sequence, int64_t token,
                            const std::vector<float>& logits) = 0;
  // A token was written. False: it is the last.
  virtual bool token_written(Sequence& sequence, int64_t token,
                             const std::vector<float>& logits) = 0;
  // The client does not keep up: the sequence sits out.
  virtual bool must_wait(const Sequence& sequence) = 0;
  // The sequence is over; its row is removed next.
  virtual void sequence_over(Sequence& sequence) = 0;
  virtual void sequence_failed(Sequence& sequence, const http::ApiError& error) = 0;
};

// One text, in a row of the session.
class Sequence {
 public:
  Sequence(SequenceOwner& its_owner, size_t its_index, const SamplerOptions& options)
      : owner(its_owner), index(its_index), sampler(options) {}

  SequenceOwner& owner;
  const size_t index;  // which of the owner's
  std::vector<int32_t> prompt;
  TokenSource* source = nullptr;  // instead of `prompt`
  bool score_prompt = false;      // token by token
  bool settle = false;  // the last token written is to be read too, for the state after it

  Sampler sampler;
  RecentTokens recent;
  Session::RowId row = -1;
  int64_t position = 0;  // tokens of the document read so far

 private:
  friend class LanguageScheduler;
  size_t read_ = 0;     // of the prompt
  int64_t pieces_ = 0;  // read so far
  bool over_ = false;
};

class LanguageScheduler : public Worker {
 public:
  LanguageScheduler(std::shared_ptr<const CompiledLanguageModel> model, int64_t start_token,
                    Metrics& metrics);

  // A row that continues from `state`, which reads its prompt and then writes.
  void add(Sequence& sequence, const State& state);
  // `copy` goes on from where `sequence` stands, writing.
  void fork(const Sequence& sequence, Sequence& copy);
  void remove(Sequence& sequence);
  // Where it stands, recent tokens included.
  State state_of(const Sequence& sequence) const;

  bool work() override;

  // Tokens read in one go.
  size_t piece() const { return piece_; }
  const Session& session() const { return session_; }

 private:
  bool read_some();
  bool read_piece(Sequence& sequence);
  void begin_writing(Sequence& sequence);
  bool step();
  bool next_token(Sequence& sequence, std::vector<Session::Token>& tokens);
  void fail(Sequence& sequence, const std::exception& error);
  void sweep();

  Session session_;
  int64_t start_token_;
  Metrics& metrics_;
  size_t piece_;
  std::list<Sequence*> readers_;
  std::list<Sequence*> writers_;
  double debt_ = 0;  // seconds of reading that steps have not had their share for yet
};

}  // namespace rondo::serve
