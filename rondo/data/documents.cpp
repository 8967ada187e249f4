// Opening documents: find the cache, decide whether it can be used, read from it.
#include "rondo/data/documents.h"

#include <fmt/core.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/data/documents_cache.h"
#include "rondo/data/text_source.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {
namespace {

// One cache for each source and tokenizer, however the source is spelled.
std::string cache_path(const DocumentsOptions& options, const Tokenizer& tokenizer) {
  std::error_code ignored;
  std::filesystem::path source = std::filesystem::canonical(options.source, ignored);
  TextHash hash;
  const std::string key = fmt::format("{}\n{}", source.string(), tokenizer.fingerprint());
  hash.add(key.data(), key.size());
  return fmt::format("{}/documents-{}.safetensors", options.cache_folder,
                     hex_fingerprint(hash.value()));
}

}  // namespace

Documents Documents::open(const DocumentsOptions& options, const Tokenizer& tokenizer) {
  const std::vector<std::string> files = list_sources(options.source);
  make_cache_folder(options.cache_folder);
  const std::string path = cache_path(options, tokenizer);
  std::optional<Documents> cached = DocumentsCache::load(path, tokenizer);
  if (cached && DocumentsCache::is_fresh(*cached, files)) {
    log_debug("documents: using {}", printable(path, PATH_MAX));
    return std::move(*cached);
  }
  cached.reset();
  build_documents(path, options.source, files, tokenizer);
  cached = DocumentsCache::load(path, tokenizer);
  if (!cached) {
    throw Error(
        ExitCode::io,
        fmt::format("{}: cannot read back what was just written", printable(path, PATH_MAX)),
        "is the disk failing, or does something else write to this folder?");
  }
  return std::move(*cached);
}

const Documents::Document& Documents::document(int64_t i) const {
  RONDO_ASSERT(i >= 0 && i < count());
  return documents_[static_cast<size_t>(i)];
}

void Documents::read(int64_t doc, int64_t first, int64_t count, int64_t* out) const {
  const int64_t length = document(doc).tokens;
  RONDO_ASSERT(first >= 0 && count >= 0 && first <= length && count <= length - first);
  file_->require_whole();
  const int64_t start = starts_[static_cast<size_t>(doc)] + first;
  widen_tokens(token_data_, token_type_, start, count, out);
}

}  // namespace rondo
