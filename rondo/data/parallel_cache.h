// The cache file behind ParallelCorpus: what is in it, how it is checked, how it is built. Internal
// to the parallel sources.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/data/cache_file.h"
#include "rondo/data/parallel_text.h"

namespace rondo {

// What the values in a cache may be.
struct ParallelLimits {
  DType source_type = DType::u8;
  DType target_type = DType::u8;
  int64_t source_largest = 0;  // token
  int64_t target_largest = 0;
  int64_t max_tokens = 0;  // of a sentence
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

// The arrays of a cache that may hold anything, or nothing unless all are there, each of its type
// and of a size that suits the others, and all values are within the limits: what comes back is
// safe to read, whoever wrote the file. No checksum is looked at.
std::optional<ParallelArrays> map_parallel(const SafetensorsFile& file,
                                           const ParallelLimits& limits);

// Who the pairs are of: fingerprints of both tokenizers and the limits, as kept in the metadata.
std::string parallel_owner(const ParallelOptions& options, const Tokenizer& source,
                           const Tokenizer& target);

// Over tokens and pairs; and over that, all else. 16 hex digits each.
std::string pairs_checksum(const ParallelArrays& arrays, const Tokenizer& source,
                           const Tokenizer& target);
std::string parallel_checksum(const ParallelArrays& arrays, const std::string& pairs_sum,
                              const std::string& owner, const std::string& built);

struct ParallelCache {
  // The cache at `path`, or nothing if it is not there, damaged, of another format, of other
  // tokenizers or other options. Checks everything, all tokens too.
  static std::optional<ParallelCorpus> load(const std::string& path, const ParallelOptions& options,
                                            const Tokenizer& source, const Tokenizer& target);

  // Whether `files` are as the cache found them.
  static bool is_fresh(const ParallelCorpus& corpus, const std::vector<std::string>& files);
};

// Reads all pairs and writes the cache at `path`. `places` are the files' paths without links, for
// the manifest.
void build_parallel(const std::string& path, const std::vector<std::string>& places,
                    const ParallelOptions& options, const Tokenizer& source,
                    const Tokenizer& target);

constexpr const char* kParallelFormat = "rondo parallel 2";
constexpr const char* kParallelOwnerKey = "owner";

}  // namespace rondo
