// Validating a documents cache: structure, checksums, and whether its sources are unchanged.
#include "rondo/data/documents_cache.h"

#include <fmt/core.h>

#include <climits>
#include <utility>

#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {
namespace {

std::optional<CacheArrays> map_arrays(const SafetensorsFile& file, DType token_type) {
  const TensorEntry* tokens = cache_array(file, "tokens", token_type);
  const TensorEntry* starts = cache_array(file, "starts", DType::i64);
  const TensorEntry* bytes = cache_array(file, "bytes", DType::i64);
  const TensorEntry* words = cache_array(file, "words", DType::i64);
  const TensorEntry* names = cache_array(file, "names", DType::u8);
  const TensorEntry* files = cache_array(file, "files", DType::u8);
  if (!tokens || !starts || !bytes || !words || !names || !files) {
    return std::nullopt;
  }
  CacheArrays arrays;
  arrays.count = bytes->elements();
  if (starts->elements() != arrays.count + 1 || words->elements() != arrays.count) {
    return std::nullopt;
  }
  arrays.token_type = token_type;
  arrays.tokens = file.bytes(*tokens);
  arrays.token_count = tokens->elements();
  arrays.starts = reinterpret_cast<const int64_t*>(file.bytes(*starts));
  arrays.bytes = reinterpret_cast<const int64_t*>(file.bytes(*bytes));
  arrays.words = reinterpret_cast<const int64_t*>(file.bytes(*words));
  arrays.names = {reinterpret_cast<const char*>(file.bytes(*names)),
                  static_cast<size_t>(names->elements())};
  arrays.files = {reinterpret_cast<const char*>(file.bytes(*files)),
                  static_cast<size_t>(files->elements())};
  return arrays;
}

// Whether the documents partition all tokens, with at least one each.
bool starts_are_sound(const CacheArrays& arrays) {
  if (arrays.count < 1 || arrays.starts[0] != 0 ||
      arrays.starts[arrays.count] != arrays.token_count) {
    return false;
  }
  for (int64_t i = 0; i < arrays.count; ++i) {
    if (arrays.starts[i + 1] <= arrays.starts[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string text_checksum(const CacheArrays& arrays, const std::string& fingerprint) {
  const auto extent = static_cast<size_t>(arrays.count) * sizeof(int64_t);
  TextHash hash;
  hash.add(fingerprint.data(), fingerprint.size());
  hash.add(&arrays.count, sizeof(arrays.count));
  hash.add(arrays.starts, extent + sizeof(int64_t));
  hash.add(arrays.bytes, extent);
  hash.add(arrays.words, extent);
  hash.add(arrays.tokens, static_cast<size_t>(arrays.token_count * dtype_size(arrays.token_type)));
  return hex_fingerprint(hash.value());
}

std::string whole_checksum(const CacheArrays& arrays, const std::string& text_sum,
                           const std::string& built) {
  TextHash hash;
  const std::string front = fmt::format("{} {} {}\n", text_sum, built, arrays.names.size());
  hash.add(front.data(), front.size());
  hash.add(arrays.names.data(), arrays.names.size());
  hash.add(arrays.files.data(), arrays.files.size());
  return hex_fingerprint(hash.value());
}

std::optional<Documents> DocumentsCache::load(const std::string& path, const Tokenizer& tokenizer) {
  std::unique_ptr<SafetensorsFile> file = open_cache(path, "documents");
  if (!file || cache_metadata(*file, kCacheFormatKey) != kCacheFormat ||
      cache_metadata(*file, kCacheTokenizerKey) != tokenizer.fingerprint()) {
    return std::nullopt;
  }
  const std::optional<CacheArrays> arrays = map_arrays(*file, token_type_for(tokenizer));
  const std::string text_sum = cache_metadata(*file, kCacheTextKey);
  const bool sound = arrays && starts_are_sound(*arrays) &&
                     text_checksum(*arrays, tokenizer.fingerprint()) == text_sum &&
                     whole_checksum(*arrays, text_sum, cache_metadata(*file, kCacheBuiltKey)) ==
                         cache_metadata(*file, kCacheWholeKey);
  if (!sound) {
    log_warn("documents: {} is damaged and will be rebuilt", printable(path, PATH_MAX));
    return std::nullopt;
  }
  Documents documents;
  documents.token_data_ = arrays->tokens;
  documents.token_type_ = arrays->token_type;
  documents.total_tokens_ = arrays->token_count;
  documents.starts_.assign(arrays->starts, arrays->starts + arrays->count + 1);
  documents.documents_.resize(static_cast<size_t>(arrays->count));
  std::string_view names = arrays->names;
  for (int64_t i = 0; i < arrays->count; ++i) {
    Documents::Document& document = documents.documents_[static_cast<size_t>(i)];
    document.name = std::string(take_until(names, '\0').value_or(""));
    document.tokens = arrays->starts[i + 1] - arrays->starts[i];
    document.bytes = arrays->bytes[i];
    document.words = arrays->words[i];
    documents.total_bytes_ += document.bytes;
    documents.total_words_ += document.words;
  }
  documents.checksum_ = text_sum;
  documents.file_ = std::move(file);
  return documents;
}

bool DocumentsCache::is_fresh(const Documents& documents, const std::vector<std::string>& files) {
  const SafetensorsFile& file = *documents.file_;
  const TensorEntry* entry = file.find("files");
  return sources_unchanged(
      {reinterpret_cast<const char*>(file.bytes(*entry)), static_cast<size_t>(entry->elements())},
      cache_metadata(file, kCacheBuiltKey), files);
}

}  // namespace rondo
