// Converts the decoding options of the command line to those of the library.
#pragma once

#include "cli/verbs.h"
#include "rondo/infer/translator.h"

namespace rondo::cli {

TranslatorOptions translator_options(const DecodingOptions& decoding, int64_t n_best = 1);
nn::WeightFormat weight_format(const DecodingOptions& decoding);
std::shared_ptr<const CompiledTranslationModel> compile(const EncoderDecoder& model,
                                                        const DecodingOptions& decoding);

}  // namespace rondo::cli
