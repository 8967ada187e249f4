// The cache file behind Documents: contents, validation and building. Internal to the documents
// sources.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/base/safetensors.h"
#include "rondo/data/cache_file.h"
#include "rondo/data/documents.h"
#include "rondo/data/text_source.h"

namespace rondo {

// The arrays of a cache, before they are written or after they are mapped.
struct CacheArrays {
  DType token_type = DType::u8;
  const uint8_t* tokens = nullptr;
  int64_t token_count = 0;
  const int64_t* starts = nullptr;  // [count + 1]
  const int64_t* bytes = nullptr;   // [count]
  const int64_t* words = nullptr;   // [count]
  int64_t count = 0;                // documents
  std::string_view names;
  std::string_view files;
};

struct DocumentsCache {
  // The cache at `path`, or nullopt if it is missing, damaged, or of another format or tokenizer.
  // Validates everything, including all tokens.
  static std::optional<Documents> load(const std::string& path, const Tokenizer& tokenizer);

  // Whether `files` are unchanged since the cache was built.
  static bool is_fresh(const Documents& documents, const std::vector<std::string>& files);
};

// Reads all `pieces` and writes the cache. `options.source` is the spec they were listed from.
void build_documents(const std::string& path, const DocumentsOptions& options,
                     const std::vector<TextPiece>& pieces, const Tokenizer& tokenizer);

// Checksums of the text and its tokens, and of that plus names and manifest. 16 hex digits each.
std::string text_checksum(const CacheArrays& arrays, const std::string& fingerprint);
std::string whole_checksum(const CacheArrays& arrays, const std::string& text_sum,
                           const std::string& built);

// Metadata beyond that of every cache.
constexpr const char* kCacheFormat = "rondo documents 1";
constexpr const char* kCacheTokenizerKey = "tokenizer";  // its fingerprint

}  // namespace rondo
