// How well a language model predicts documents: bits per token and per byte, word-level perplexity,
// and the loss by position in the document. Used while training and by `rondo eval`.
#pragma once

#include <functional>

#include "rondo/data/segments.h"
#include "rondo/metrics/test_items.h"
#include "rondo/model/language_model.h"

namespace rondo {

struct LanguageScore {
  double nats = 0;     // summed over scored tokens
  int64_t tokens = 0;  // scored: all but each document's first
  double bytes = 0;    // of original text that they stand for
  double words = 0;
  double seconds = 0;

  // Scored tokens whose 0-based place in the document lies in [2^k, 2^(k+1)), k = index; 0 and 1 in
  // the first.
  struct Bucket {
    double nats = 0;
    int64_t tokens = 0;
  };
  std::vector<Bucket> by_position;

  double bits_per_token() const;
  double bits_per_byte() const;
  // Rae et al.: exp(total nats / words).
  double word_perplexity() const;
};

// Tokens of a document that make one item of a test. Neighboring tokens are not independent;
// blocks of this length nearly are.
constexpr int64_t kItemTokens = 1024;

struct ScoreOptions {
  int64_t rows = 8;
  int64_t length = 512;
  int64_t max_tokens = 0;  // stop after about this many scored tokens; 0 = all documents
  bool progress = false;
  bool zero_states = false;         // recurrent models: tokens read zeros in place of the states
  std::function<bool()> stop = {};  // asked between batches: yes ends it there
  // Each shard scores rows of its own; the numbers of all are to be added.
  Shard shard = {};
  // If not null, receives the score of every block of kItemTokens tokens of a document, in order.
  TestItems* items = nullptr;
};

// Reads the documents in order, state carried along each, nothing shuffled. The network's mode
// (train or eval) is the caller's. `state` (may be null; one row): what came before the first
// document; it receives the state after the last token read, with the logits there and the
// document's recent tokens, as Writer continues from.
LanguageScore score_documents(LanguageModel& model, const Documents& documents,
                              const ScoreOptions& options, State* state = nullptr);

// A segment batch as tensors: tokens and labels [B, N], reset [B].
struct SegmentTensors {
  explicit SegmentTensors(const SegmentBatch& batch);
  // Leaves only the first `length` tokens.
  void shorten(int64_t length);
  Tensor tokens, labels, reset;
};

}  // namespace rondo
