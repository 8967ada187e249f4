// The cache file behind ParallelCorpus: contents, validation and building. Internal to the parallel
// sources.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/data/cache_file.h"
#include "rondo/data/parallel_text.h"

namespace rondo {

// Valid ranges of the values in a cache.
struct ParallelLimits {
  DType source_type = DType::u8;
  DType target_type = DType::u8;
  int64_t source_largest = 0;  // token id
  int64_t target_largest = 0;
  int64_t max_tokens = 0;  // per sentence
};
ParallelLimits parallel_limits(const ParallelOptions& options, const Tokenizer& source,
                               const Tokenizer& target);

// The arrays of a cache, before they are written or after they are mapped.
struct ParallelArrays {
  ParallelSide source;
  ParallelSide target;
  int64_t count = 0;               // pairs
  const int64_t* lines = nullptr;  // [count]
  ParallelCounts counts;
  std::string_view files;
};

// The arrays of an untrusted cache file, or nullopt unless all exist with the right types and
// consistent sizes and all values are within the limits: the result is safe to read, whoever wrote
// the file. Checksums are not checked.
std::optional<ParallelArrays> map_parallel(const SafetensorsFile& file,
                                           const ParallelLimits& limits);

// What the pairs depend on: fingerprints of both tokenizers and the limits, as stored in the
// metadata.
std::string parallel_owner(const ParallelOptions& options, const Tokenizer& source,
                           const Tokenizer& target);

// Checksums of tokens and pairs, and of that plus everything else. 16 hex digits each.
std::string pairs_checksum(const ParallelArrays& arrays, const Tokenizer& source,
                           const Tokenizer& target);
std::string parallel_checksum(const ParallelArrays& arrays, const std::string& pairs_sum,
                              const std::string& owner, const std::string& built);

struct ParallelCache {
  // The cache at `path`, or nullopt if it is missing, damaged, or of another format, tokenizers or
  // options. Validates everything, including all tokens.
  static std::optional<ParallelCorpus> load(const std::string& path, const ParallelOptions& options,
                                            const Tokenizer& source, const Tokenizer& target);

  // Whether `files` are unchanged since the cache was built.
  static bool is_fresh(const ParallelCorpus& corpus, const std::vector<std::string>& files);
};

// Reads all pairs and writes the cache at `path`. `places` are the files' paths with symbolic links
// resolved, for the manifest.
void build_parallel(const std::string& path, const std::vector<std::string>& places,
                    const ParallelOptions& options, const Tokenizer& source,
                    const Tokenizer& target);

constexpr const char* kParallelFormat = "rondo parallel 2";
constexpr const char* kParallelOwnerKey = "owner";

}  // namespace rondo
