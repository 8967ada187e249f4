// Compares decoding (packed weights, folded signals, caches, token by token) with the plain forward
// pass of training: whether both generate the same translations.
#pragma once

#include "rondo/infer/translator.h"

namespace rondo {

struct Agreement {
  int64_t sentences = 0;
  int64_t same = 0;  // sentences whose every token is also the argmax of the forward pass

  Agreement& operator+=(const Agreement& more) {
    sentences += more.sentences;
    same += more.same;
    return *this;
  }
};

// `written` are greedy translations (a beam of 1) of `lines` by `translator`; `as_trained` has the
// same weights, unconverted. Its forward pass over each whole translation tells whether it would
// generate the same; `bf16`: in the mixed precision of training. Blank and truncated lines are
// skipped.
Agreement greedy_agreement(const Translator& translator, EncoderDecoder& as_trained, bool bf16,
                           const std::vector<std::string>& lines,
                           const std::vector<Translation>& written);

}  // namespace rondo
