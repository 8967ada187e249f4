// Opening a parallel corpus: finds the cache, decides whether it is usable, and reads from it.
#include <fmt/core.h>

#include <climits>
#include <filesystem>
#include <system_error>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/data/parallel_cache.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {
namespace {

// Canonical paths of the files; one for a TSV. A missing file is reported when it is read.
std::vector<std::string> canonical_files(const ParallelFiles& files) {
  std::vector<std::string> places;
  for (const std::string& file : {files.source, files.target}) {
    std::error_code error;
    const std::filesystem::path place = std::filesystem::canonical(file, error);
    if (!file.empty()) {
      places.push_back(error ? file : place.string());
    }
  }
  return places;
}

// One cache per pair of files, tokenizers and limits.
std::string parallel_path(const std::string& folder, const std::vector<std::string>& places,
                          const std::string& owner) {
  TextHash hash;
  for (const std::string& place : places) {
    hash.add(place);
    hash.add("\0", 1);
  }
  hash.add(owner);
  return fmt::format("{}/parallel-{}.safetensors", folder, hex_fingerprint(hash.value()));
}

}  // namespace

int32_t TokenSpan::operator[](int64_t i) const {
  require(i >= 0 && i < size_, "tokens: token {} does not exist, there are {}", i, size_);
  if (type_ == DType::u8) {
    return tokens_[i];
  }
  return type_ == DType::i16 ? reinterpret_cast<const int16_t*>(tokens_)[i]
                             : reinterpret_cast<const int32_t*>(tokens_)[i];
}

void TokenSpan::copy_to(int64_t* out) const { widen_tokens(tokens_, type_, 0, size_, out); }

std::vector<int32_t> TokenSpan::to_vector() const {
  std::vector<int32_t> tokens(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i) {
    tokens[static_cast<size_t>(i)] = (*this)[i];
  }
  return tokens;
}

ParallelCorpus ParallelCorpus::open(const ParallelOptions& options, const Tokenizer& source,
                                    const Tokenizer& target) {
  require(options.max_tokens >= 1, "pairs: expected at least 1 token, got {}", options.max_tokens);
  require(options.threads >= 0, "pairs: expected 0 or more threads, got {}", options.threads);
  make_cache_folder(options.cache_folder);
  const std::vector<std::string> places = canonical_files(options.files);
  const std::string path =
      parallel_path(options.cache_folder, places, parallel_owner(options, source, target));
  std::optional<ParallelCorpus> cached = ParallelCache::load(path, options, source, target);
  if (cached && ParallelCache::is_fresh(*cached, places)) {
    log_debug("parallel text: using {}", printable(path, PATH_MAX));
    return std::move(*cached);
  }
  cached.reset();
  build_parallel(path, places, options, source, target);
  cached = ParallelCache::load(path, options, source, target);
  if (!cached) {
    throw Error(
        ExitCode::io,
        fmt::format("{}: cannot read back the cache just written", printable(path, PATH_MAX)),
        "check the disk, and that nothing else writes to this folder");
  }
  return std::move(*cached);
}

TokenSpan ParallelCorpus::span(const ParallelSide& side, int64_t i) const {
  require(i >= 0 && i < count(), "pairs: pair {} does not exist, there are {}", i, count());
  const int64_t begin = side.starts[i];
  return {side.tokens + begin * dtype_size(side.type), side.type, side.starts[i + 1] - begin};
}

TokenSpan ParallelCorpus::source(int64_t i) const { return span(source_, i); }

TokenSpan ParallelCorpus::target(int64_t i) const { return span(target_, i); }

int64_t ParallelCorpus::line(int64_t i) const {
  require(i >= 0 && i < count(), "pairs: pair {} does not exist, there are {}", i, count());
  return lines_[i];
}

}  // namespace rondo
