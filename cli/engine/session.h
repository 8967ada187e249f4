// Shared by the engine's verbs: starting torch, the cache folder, text from a file or stdin.
#pragma once

#include <cstdint>
#include <string>

#include "cli/verbs.h"
#include "rondo/infer/generator.h"
#include "rondo/nn/tensor_file.h"

namespace rondo::cli {

// Sets the allocator, the kernels and torch's threads (Debian's libtorch starts with one).
void start_engine(const ComputeOptions& how = {});

inline Verify verify_as(const LoadOptions& how) {
  return how.verify ? Verify::checksum : Verify::nothing;
}

// `given`, or the user's cache: $XDG_CACHE_HOME/rondo, ~/.cache/rondo.
std::string cache_folder(const std::string& given);

// The whole text of a file (plain, .gz, .zst), or of stdin for "-".
std::string read_document(const std::string& path);

// Feeds tokens to a generator, with a progress bar if it takes long.
void read_with_progress(Generator& document, const std::vector<int32_t>& tokens);

}  // namespace rondo::cli
