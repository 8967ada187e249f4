// How well a language model predicts documents: bits per token and per byte, word-level perplexity,
// and the loss by position in the document. Used during training and by `rondo eval`.
#pragma once

#include <functional>

#include "rondo/data/segments.h"
#include "rondo/metrics/test_items.h"
#include "rondo/model/language_model.h"

namespace rondo {

struct LanguageScore {
  double nats = 0;     // summed over scored tokens
  int64_t tokens = 0;  // scored: all but each document's first
  double bytes = 0;    // of the original text they encode
  double words = 0;
  double seconds = 0;

  // Scored tokens whose 0-based position in the document is in [2^k, 2^(k+1)), k = index; positions
  // 0 and 1 are in the first bucket.
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

// Tokens of a document that form one test item. Neighboring tokens are not independent; blocks of
// this length nearly are.
constexpr int64_t kItemTokens = 1024;

struct ScoreOptions {
  int64_t rows = 8;
  int64_t length = 512;
  int64_t max_tokens = 0;  // stop after about this many scored tokens; 0 = all documents
  bool progress = false;
  bool zero_states = false;         // recurrent models: tokens see zeros instead of states
  std::function<bool()> stop = {};  // called between batches; true ends scoring
  // Each shard scores its own rows; the caller adds up the results of all shards.
  Shard shard = {};
  // If not null, receives the score of every block of kItemTokens tokens of a document, in order.
  TestItems* items = nullptr;
};

// Processes the documents in order, carrying the state within each; nothing is shuffled. The caller
// sets the network's mode (train or eval). `state` (may be null; one row): the context before the
// first document; on return, the state after the last token, with its logits and the document's
// recent tokens, so that Generator can continue from it.
LanguageScore score_documents(LanguageModel& model, const Documents& documents,
                              const ScoreOptions& options, State* state = nullptr);

// A segment batch as tensors: tokens and labels [B, N] on the device, reset [B] on the CPU.
struct SegmentTensors {
  explicit SegmentTensors(const SegmentBatch& batch, at::Device device = at::kCPU);
  // Keeps only the first `length` tokens.
  void shorten(int64_t length);
  Tensor tokens, labels, reset;
};

}  // namespace rondo
