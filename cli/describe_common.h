// Options that several verbs share.
#pragma once

#include "cli/options.h"
#include "cli/verbs.h"

namespace rondo::cli {

constexpr const char* kJsonHelp = "print JSON";
constexpr const char* kRunHelp =
    "a run folder, an exported folder, a model file or a checkpoint (.safetensors)";
constexpr const char* kCacheHelp = "cache folder for tokenized text (default: ~/.cache/rondo)";
constexpr const char* kTokenizerHelp = "\"bytes\" or a SentencePiece model (default: the run's)";
constexpr const char* kNamedDataHelp = "location of a named data set: NAME=DIR, or DIR alone";

// --kernels: the fused kernels, or the plain operations they must agree with.
void describe_kernels(OptionVisitor& v, std::string& kernels);
// --threads and --kernels.
void describe(OptionVisitor& v, ComputeOptions& o);
// --no-verify.
void describe(OptionVisitor& v, LoadOptions& o);
// Beam search, lengths and weights of a translation model; `batch`: help text of --batch.
void describe_decoding(OptionVisitor& v, DecodingOptions& o, const char* batch);

}  // namespace rondo::cli
