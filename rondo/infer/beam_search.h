// Beam search for translation models. The encoder runs once, the memory of a sentence is shared by
// its beams, finished sentences leave the batch, and the result for a sentence does not depend on
// the others in its batch.
#pragma once

#include "rondo/infer/compiled_translation_model.h"

namespace rondo {

struct BeamOptions {
  int64_t beam = 5;
  int64_t n_best = 1;           // at most `beam`
  double length_penalty = 1.0;  // hypotheses are ranked by log p / length^penalty
  // A translation has up to max_ratio · source tokens + max_extra tokens, including the end token,
  // and at most max_length.
  double max_ratio = 2.0;
  int64_t max_extra = 20;
  int64_t max_length = 1024;
};

// Throws Error{bad_input} for invalid options.
void check_beam_options(const BeamOptions& options);

int64_t most_tokens(const BeamOptions& options, int64_t source_tokens);

// Special token IDs.
struct SearchTokens {
  int64_t begin = 1;
  int64_t end = 2;
  std::vector<int64_t> banned;  // never generated: padding, begin, unknown
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without special tokens
  double log_probability = 0;   // including the end token
  double score = 0;             // what hypotheses are ranked by
};

// The best translations of every row of source [B, S] (padded), best first. Runs on the threads of
// `team`. Throws Error{bad_input} if the source, special tokens or options do not fit the model.
std::vector<std::vector<Hypothesis>> beam_search(const CompiledTranslationModel& model,
                                                 const Tensor& source,
                                                 const SearchTokens& special_tokens,
                                                 const BeamOptions& options, kernels::Team& team);

}  // namespace rondo
