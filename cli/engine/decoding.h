// The decoding options of a command line as the library has them.
#pragma once

#include "cli/verbs.h"
#include "rondo/decode/translator.h"

namespace rondo::cli {

TranslatorOptions translator_options(const DecodingOptions& decoding, int64_t n_best = 1);

}  // namespace rondo::cli
