// Opening documents: finds the cache, decides whether it is usable, and reads from it.
#include "rondo/data/documents.h"

#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/part_spec.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/data/documents_cache.h"
#include "rondo/data/text_source.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {
namespace {

// One cache per source, part and tokenizer, however the source path is spelled.
std::string cache_path(const DocumentsOptions& options, const std::vector<TextPiece>& pieces,
                       const Tokenizer& tokenizer) {
  std::error_code ignored;
  const PartSpec part = parse_part(options.source);
  std::filesystem::path source = std::filesystem::canonical(part.path, ignored);
  TextHash hash;
  std::string key = fmt::format("{}\n{}", source.string(), tokenizer.fingerprint());
  if (options.divide > 0) key += fmt::format("\ndivide {}", options.divide);
  if (part.is_part) {
    key += "\n#" + part.written;
    // A percentage moves when a file outside the part grows.
    for (const TextPiece& piece : pieces) {
      if (!piece.whole()) key += fmt::format("\n{}:{}", piece.begin, piece.end);
    }
  }
  hash.add(key.data(), key.size());
  return fmt::format("{}/documents-{}.safetensors", options.cache_folder,
                     hex_fingerprint(hash.value()));
}

}  // namespace

Documents Documents::open(const DocumentsOptions& options, const Tokenizer& tokenizer) {
  require(options.divide >= 0, "documents: expected 0 or more bytes, got {}", options.divide);
  const std::vector<TextPiece> pieces = list_text(options.source);
  std::vector<std::string> files;
  for (const TextPiece& piece : pieces) files.push_back(piece.path);
  make_cache_folder(options.cache_folder);
  const std::string path = cache_path(options, pieces, tokenizer);
  std::optional<Documents> cached = DocumentsCache::load(path, tokenizer);
  if (cached && DocumentsCache::is_fresh(*cached, files)) {
    log_debug("documents: using {}", printable(path, PATH_MAX));
    return std::move(*cached);
  }
  cached.reset();
  build_documents(path, options, pieces, tokenizer);
  cached = DocumentsCache::load(path, tokenizer);
  if (!cached) {
    throw Error(
        ExitCode::io,
        fmt::format("{}: cannot read back the cache just written", printable(path, PATH_MAX)),
        "check the disk, and that nothing else writes to this folder");
  }
  return std::move(*cached);
}

void Documents::shorten(int64_t tokens) {
  if (tokens >= total_tokens_) return;
  const auto kept = [&](int64_t limit) {
    int64_t sum = 0;
    for (const Document& d : documents_) sum += std::min(d.tokens, limit);
    return sum;
  };
  int64_t limit = 2;
  for (int64_t step = int64_t{1} << 40; step > 0; step >>= 1) {
    if (kept(limit + step) <= tokens) limit += step;
  }
  total_tokens_ = total_bytes_ = total_words_ = 0;
  for (Document& d : documents_) {
    const double share =
        static_cast<double>(std::min(d.tokens, limit)) / static_cast<double>(d.tokens);
    d.bytes = static_cast<int64_t>(share * static_cast<double>(d.bytes));
    d.words = static_cast<int64_t>(share * static_cast<double>(d.words));
    d.tokens = std::min(d.tokens, limit);
    total_tokens_ += d.tokens;
    total_bytes_ += d.bytes;
    total_words_ += d.words;
  }
  checksum_ += fmt::format("#{}", limit);
}

const Documents::Document& Documents::document(int64_t i) const {
  require(i >= 0 && i < count(), "documents: document {} does not exist, there are {}", i, count());
  return documents_[static_cast<size_t>(i)];
}

void Documents::read(int64_t doc, int64_t first, int64_t count, int64_t* out) const {
  const int64_t length = document(doc).tokens;
  require(first >= 0 && count >= 0 && first <= length && count <= length - first,
          "document {}: expected a range within its {} tokens, got {} from {}", doc, length, count,
          first);
  file_->require_whole();
  const int64_t start = starts_[static_cast<size_t>(doc)] + first;
  widen_tokens(token_data_, token_type_, start, count, out);
}

}  // namespace rondo
