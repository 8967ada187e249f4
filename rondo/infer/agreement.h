// Whether decoding writes what the network would write as it is trained: weights packed, signals
// folded, caches and token by token on one side, the plain forward pass of training on the other.
#pragma once

#include "rondo/infer/translator.h"

namespace rondo {

struct Agreement {
  int64_t sentences = 0;
  int64_t same = 0;  // of which every token is the likeliest one by the forward pass too

  Agreement& operator+=(const Agreement& more) {
    sentences += more.sentences;
    same += more.same;
    return *this;
  }
};

// `written` are greedy translations (a beam of 1) of `lines` by `translator`; `as_trained` has the
// same weights, not converted. Its forward pass over each whole translation says whether it would
// have written the same: with bf16, in the mixed precision of training. Lines without text, and
// those that were cut, do not count.
Agreement greedy_agreement(const Translator& translator, EncoderDecoder& as_trained, bool bf16,
                           const std::vector<std::string>& lines,
                           const std::vector<Translation>& written);

}  // namespace rondo
