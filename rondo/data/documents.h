// A corpus of tokenized documents in one memory-mapped file: opening it costs no memory, and
// reading from it no parsing. Built from text files (one file = one document) when first asked for.
//
// The cache is a safetensors file in the cache folder, one for each (source, tokenizer):
//   tokens  [tokens]       u8, i16 or i32, by the largest id the tokenizer can give
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
  std::string cache_folder;  // made if it is not there
  // Longer texts become several documents of about so many bytes, divided between lines, so that
  // the rows of a batch have something different to read; 0 = one document a file.
  int64_t divide = 0;
};

// Immutable once open; safe from any number of threads. Moving keeps pointers to document(i).
class Documents {
 public:
  // Opens the cache, building it (with a progress bar) when it is missing or damaged, or when a
  // source was added, removed or changed: files whose size and time of change are as they were
  // count as unchanged, others are compared by content. A new cache replaces the old one in one
  // step, so processes that open at once all end with a whole one. Building holds some 16 MB
  // (100 with SentencePiece on endless lines), whatever the corpus, and takes twice the cache's
  // room on the disk for a moment. Text is kept exactly, whatever its
  // bytes. Empty files are left out (the log counts them).
  //
  // Error{bad_input} if there is no text at all, or a compressed file is broken; Error{io}.
  static Documents open(const DocumentsOptions& options, const Tokenizer& tokenizer);

  struct Document {
    std::string name;    // path below the source folder; for a file or list, the path as listed
    int64_t tokens = 0;  // at least 1
    int64_t bytes = 0;   // of the original text, decompressed
    int64_t words = 0;   // runs of non-whitespace (ASCII), as Rae et al. count
  };

  int64_t count() const { return static_cast<int64_t>(documents_.size()); }
  int64_t tokens() const { return total_tokens_; }
  int64_t total_bytes() const { return total_bytes_; }
  int64_t total_words() const { return total_words_; }
  const Document& document(int64_t i) const;

  // Leaves only the beginning of each document, as many tokens of each as can be so that there are
  // at most `tokens` in all (at least two of each). Bytes and words shrink in proportion. Another
  // checksum belongs to it.
  void shorten(int64_t tokens);

  // Tokens [first, first + count) of document `doc`, widened into `out`. They must exist. Error{io}
  // if somebody has cut the cache short.
  void read(int64_t doc, int64_t first, int64_t count, int64_t* out) const;

  // 16 hex digits over tokens, their division into documents, bytes and words, and the tokenizer;
  // not over names and places. Equal for the same text wherever it lies.
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
