// What verbs of the engine share: how to compute, the cache folder, text from a file or
// stdin.
#pragma once

#include <cstdint>
#include <string>

#include "cli/verbs.h"
#include "rondo/infer/generator.h"
#include "rondo/nn/tensor_file.h"

namespace rondo::cli {

// The allocator, the kernels to use and torch's threads (Debian's libtorch comes up with one).
void start_engine(const ComputeOptions& how = {});

inline Verify verify_as(const LoadOptions& how) {
  return how.verify ? Verify::checksum : Verify::nothing;
}

// `given`, or the user's cache: $XDG_CACHE_HOME/rondo, ~/.cache/rondo.
std::string cache_folder(const std::string& given);

// The whole text of a file (plain, .gz, .zst), or of stdin for "-".
std::string read_document(const std::string& path);

// Reads tokens into a document, with a progress bar where that takes long.
void read_with_progress(Generator& document, const std::vector<int32_t>& tokens);

}  // namespace rondo::cli
