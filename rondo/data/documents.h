// A corpus of tokenized documents in one memory-mapped file: opening it takes no memory, reading it
// no parsing. Built from text files (one file = one document) on first use.
//
// The cache is a safetensors file in the cache folder, one per (source, tokenizer):
//   tokens  [tokens]       u8, i16 or i32, by the tokenizer's largest id
//   starts  [documents+1]  i64, where each document's tokens begin
//   bytes   [documents]    i64, of the original text        words  [documents]  i64
//   names   u8, each followed by NUL                        files  u8, the manifest of sources
// with a checksum over all of it in the metadata.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rondo/base/safetensors.h"
#include "rondo/data/tokenizer.h"

namespace rondo {

struct DocumentsOptions {
  std::string source;        // a file, folder or list, or a part of it, as for list_text()
  std::string cache_folder;  // created if it does not exist
  // Splits longer texts into documents of about this many bytes, at line boundaries, so that the
  // rows of a batch get different text; 0 = one document per file.
  int64_t divide = 0;
};

// Immutable once open; thread-safe. Moving keeps pointers to document(i) valid.
class Documents {
 public:
  // Opens the cache. Builds it (with a progress bar) if it is missing or damaged, or if a source
  // was added, removed or changed: files with the same size and modification time count as
  // unchanged, others are compared by content. A new cache replaces the old one atomically, so
  // concurrent processes all end up with a complete one. Building uses about 16 MB of memory (100
  // MB with SentencePiece on very long lines) regardless of corpus size, and temporarily twice the
  // cache's disk space. Text is preserved byte for byte. Empty files are skipped (the log counts
  // them).
  //
  // Error{bad_input} if there is no text at all or a compressed file is damaged; Error{io}.
  static Documents open(const DocumentsOptions& options, const Tokenizer& tokenizer);

  struct Document {
    std::string name;  // path relative to the source folder; for a file or list, the path as listed
    int64_t tokens = 0;  // at least 1
    int64_t bytes = 0;   // of the original text, decompressed
    int64_t words = 0;   // runs of non-whitespace (ASCII), as Rae et al. count
  };

  int64_t count() const { return static_cast<int64_t>(documents_.size()); }
  int64_t tokens() const { return total_tokens_; }
  int64_t total_bytes() const { return total_bytes_; }
  int64_t total_words() const { return total_words_; }
  const Document& document(int64_t i) const;

  // Truncates every document to its beginning, at the largest length that keeps the total within
  // `tokens` (but at least two tokens each). Bytes and words shrink in proportion; the checksum
  // changes.
  void shorten(int64_t tokens);

  // Tokens [first, first + count) of document `doc`, widened into `out`. They must exist. Error{io}
  // if the cache file has been truncated.
  void read(int64_t doc, int64_t first, int64_t count, int64_t* out) const;

  // 16 hex digits over the tokens, document boundaries, bytes, words and the tokenizer, but not
  // names or paths: equal for the same text wherever it is stored.
  const std::string& checksum() const { return checksum_; }

  const std::string& path() const { return file_->path(); }  // of the cache

 private:
  Documents() = default;
  friend struct DocumentsCache;  // documents_cache.h: reads and checks the file

  std::unique_ptr<SafetensorsFile> file_;
  const uint8_t* token_data_ = nullptr;  // inside the mapping
  DType token_type_ = DType::u8;
  std::vector<Document> documents_;
  std::vector<int64_t> starts_;
  int64_t total_tokens_ = 0;
  int64_t total_bytes_ = 0;
  int64_t total_words_ = 0;
  std::string checksum_;
};

}  // namespace rondo
