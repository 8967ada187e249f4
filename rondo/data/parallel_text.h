// Parallel text for translation: sentence pairs in two line-aligned files or one TSV file, and a
// tokenized corpus of them in one memory-mapped file, so that opening it takes no memory.
//
// The cache is a safetensors file in the cache folder, one per (files, tokenizers, limit):
//   source, target                tokens: u8, i16 or i32, by the tokenizer's largest id
//   source_starts, target_starts  [pairs+1]  i64, where each sentence's tokens begin
//   lines   [pairs]  i64, the line each pair came from
//   counts  [5]      i64, ParallelCounts in order
//   files            u8, the manifest of the files
// with a checksum over all of it in the metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rondo/base/limits.h"
#include "rondo/base/safetensors.h"
#include "rondo/data/tokenizer.h"

namespace rondo {

// Where the two sides are.
struct ParallelFiles {
  std::string source;
  std::string target;  // empty: `source` is a TSV
  // Lines [first_line, last_line) are read, counted from 0.
  int64_t first_line = 0;
  int64_t last_line = INT64_MAX;

  bool whole() const { return first_line == 0 && last_line == INT64_MAX; }
};

// `spec` is one of
//   NAME.tsv, .tsv.gz, .tsv.zst  lines of source TAB target; further columns are ignored
//   PATH,PATH                    source, target; plain, .gz or .zst
//   PREFIX                       PREFIX.<source language> and PREFIX.<target language>, each plain,
//                                .gz or .zst; if there are several, the first of these
// and may end in a part (base/part_spec.h), whose numbers count lines: corpus#:-2000, corpus#-1%:
// Error{io} listing all names tried if a file is missing, Error{bad_input} if it is not a regular
// file or the part is empty.
ParallelFiles find_parallel(const std::string& spec, const std::string& source_language,
                            const std::string& target_language);

// Pairs of lines, in bounded memory. A line ends at '\n' or at the end of the file; one trailing
// '\r' is dropped. All other bytes are preserved. A reader that threw must not be used again.
class PairReader {
 public:
  explicit PairReader(const ParallelFiles& files);  // Error{io}
  ~PairReader();
  PairReader(PairReader&& other) noexcept;
  PairReader& operator=(PairReader&& other) noexcept;

  // The next pair; false at the end, with `source` and `target` empty. Error{bad_input} if one file
  // has more lines than the other (the longer one is read to its end to report how many), a TSV
  // line has no tab, or compressed data are damaged; Error{io}.
  bool next(std::string& source, std::string& target);

  int64_t line() const { return line_; }         // of the last pair, from 1, within the part
  bool over_long() const { return over_long_; }  // a side was cut to kMaxLineBytes
  int64_t consumed() const;  // bytes of the files themselves read so far, for progress

  // Hashes of the decompressed text read so far; of all of it once next() has returned false.
  uint64_t source_hash() const;
  uint64_t target_hash() const;  // 0 for a TSV

 private:
  class Lines;  // of one file
  ParallelFiles files_;
  std::unique_ptr<Lines> source_;
  std::unique_ptr<Lines> target_;  // null for a TSV
  bool next_line(std::string& source, std::string& target);

  int64_t line_ = 0;
  int64_t skipped_ = 0;  // lines before the part
  bool over_long_ = false;
};

// The number of pairs, by reading them all; shows progress if that takes long.
int64_t pairs_in(const ParallelFiles& files);

// Tokens in a mapping, stored as narrow as possible. Cheap to copy; valid as long as its owner.
class TokenSpan {
 public:
  TokenSpan(const uint8_t* tokens, DType type, int64_t size)
      : tokens_(tokens), type_(type), size_(size) {}

  int64_t size() const { return size_; }
  int32_t operator[](int64_t i) const;
  void copy_to(int64_t* out) const;  // all, widened
  std::vector<int32_t> to_vector() const;

 private:
  const uint8_t* tokens_;  // aligned for the type
  DType type_;             // u8, i16 or i32
  int64_t size_;
};

// One side of a corpus in memory.
struct ParallelSide {
  DType type = DType::u8;
  const uint8_t* tokens = nullptr;
  int64_t token_count = 0;
  const int64_t* starts = nullptr;  // [pairs + 1]
};

struct ParallelOptions {
  ParallelFiles files;
  std::string cache_folder;  // created if it does not exist

  // A pair with more tokens on either side, or with a line longer than kMaxLineBytes, is over-long.
  // At least 1.
  int64_t max_tokens = 256;
  bool cut = false;  // cut over-long sides to the first max_tokens; otherwise skip the pair

  int64_t threads = 0;  // for tokenizing; 0: one per CPU. Does not affect the result
};

// lines = pairs + empty + long_skipped.
struct ParallelCounts {
  int64_t lines = 0;
  int64_t pairs = 0;         // in the corpus
  int64_t empty = 0;         // skipped: a side is empty or only ASCII whitespace
  int64_t long_skipped = 0;  // skipped: over-long and not cut
  int64_t long_cut = 0;      // among the pairs: over-long, one or both sides cut
};

// Immutable once open; thread-safe. Moving keeps spans valid.
class ParallelCorpus {
 public:
  // Opens the cache. Builds it (with a progress bar) if it is missing or damaged or a file has
  // changed: files with the same size and modification time count as unchanged, others are compared
  // by content. A new cache replaces the old one atomically, so concurrent processes all end up
  // with a complete one. Building uses a few MB of memory per thread regardless of corpus size, and
  // temporarily twice the cache's disk space.
  //
  // Error{bad_input} if no pair remains, and as for PairReader::next(); Error{io}.
  static ParallelCorpus open(const ParallelOptions& options, const Tokenizer& source,
                             const Tokenizer& target);

  int64_t count() const { return counts_.pairs; }
  TokenSpan source(
      int64_t i) const;  // without special tokens; at least one token, at most max_tokens
  TokenSpan target(int64_t i) const;
  int64_t line(int64_t i) const;  // of the pair, from 1, within the part

  int64_t source_tokens() const { return source_.token_count; }  // total
  int64_t target_tokens() const { return target_.token_count; }
  const ParallelCounts& counts() const { return counts_; }

  // 16 hex digits over both tokenizers, the tokens and the pair boundaries, but not names, lines or
  // paths: equal for the same pairs wherever they come from.
  const std::string& fingerprint() const { return fingerprint_; }

  const std::string& path() const { return file_->path(); }  // of the cache

  // Error{io} if the cache file has been truncated. Readers should call this from time to time.
  void require_whole() const { file_->require_whole(); }

 private:
  ParallelCorpus() = default;
  friend struct ParallelCache;  // parallel_cache.h: reads and checks the file

  TokenSpan span(const ParallelSide& side, int64_t i) const;

  std::unique_ptr<SafetensorsFile> file_;
  ParallelSide source_;  // in the mapping, like lines_
  ParallelSide target_;
  const int64_t* lines_ = nullptr;
  ParallelCounts counts_;
  std::string fingerprint_;
};

}  // namespace rondo
