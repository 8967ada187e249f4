// Parallel text for translation: sentence pairs in two files, line by line, or in one TSV file;
// and a corpus of them, tokenized, in one memory-mapped file, so that opening it costs no memory.
//
// The cache is a safetensors file in the cache folder, one for each (files, tokenizers, limit):
//   source, target                tokens: u8, i16 or i32, by the largest id the tokenizer can give
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
// Error{io} naming all names tried if one is missing, Error{bad_input} if it is no regular file, or
// if nothing is left of it.
ParallelFiles find_parallel(const std::string& spec, const std::string& source_language,
                            const std::string& target_language);

// Pairs of lines, in bounded memory. A line ends at '\n', or at the end of the file; one '\r' at
// its end is dropped. All else is kept, whatever its bytes. A reader that threw is spent.
class PairReader {
 public:
  explicit PairReader(const ParallelFiles& files);  // Error{io}
  ~PairReader();
  PairReader(PairReader&& other) noexcept;
  PairReader& operator=(PairReader&& other) noexcept;

  // The next pair; false at the end, and `source` and `target` hold nothing. Error{bad_input} if
  // one file has more lines than the other (the longer one is read to its end, to say how many), a
  // line of a TSV has no tab, or compressed data are damaged; Error{io}.
  bool next(std::string& source, std::string& target);

  int64_t line() const { return line_; }  // of the pair last given, from 1; of a part, its own
  bool over_long() const { return over_long_; }  // a side of it is cut to kMaxLineBytes
  int64_t consumed() const;  // bytes of the files themselves taken so far, for progress

  // Hashes of the text read so far, decompressed; of all of it once next() gave false.
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

// Tokens in a mapping, kept as narrow as they may be. Copy freely; valid while what gave it is.
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

// One side of a corpus as it lies in memory.
struct ParallelSide {
  DType type = DType::u8;
  const uint8_t* tokens = nullptr;
  int64_t token_count = 0;
  const int64_t* starts = nullptr;  // [pairs + 1]
};

struct ParallelOptions {
  ParallelFiles files;
  std::string cache_folder;  // made if it is not there

  // A pair with more tokens on either side, or with a line beyond kMaxLineBytes, is over-long. At
  // least 1.
  int64_t max_tokens = 256;
  bool cut = false;  // over-long sides are cut to the first max_tokens; else the pair is skipped

  int64_t threads = 0;  // that tokenize; 0: one for each processor. Changes no result
};

// lines = pairs + empty + long_skipped.
struct ParallelCounts {
  int64_t lines = 0;
  int64_t pairs = 0;         // in the corpus
  int64_t empty = 0;         // skipped: a side is empty or only ASCII whitespace
  int64_t long_skipped = 0;  // skipped: over-long, and not to be cut
  int64_t long_cut = 0;      // among the pairs: over-long, a side or both cut
};

// Immutable once open; safe from any number of threads. Moving keeps spans valid.
class ParallelCorpus {
 public:
  // Opens the cache, building it (with a progress bar) when it is missing or damaged or a file has
  // changed: files whose size and time of change are as they were count as unchanged, others are
  // compared by content. A new cache replaces the old one in one step, so processes that open at
  // once all end with a whole one. Building holds some MB for each thread, whatever the corpus, and
  // takes twice the cache's room on the disk for a moment.
  //
  // Error{bad_input} if no pair remains, and as PairReader::next(); Error{io}.
  static ParallelCorpus open(const ParallelOptions& options, const Tokenizer& source,
                             const Tokenizer& target);

  int64_t count() const { return counts_.pairs; }
  TokenSpan source(
      int64_t i) const;  // without special tokens; at least one token, at most max_tokens
  TokenSpan target(int64_t i) const;
  int64_t line(int64_t i) const;  // that the pair came from, from 1

  int64_t source_tokens() const { return source_.token_count; }  // in all
  int64_t target_tokens() const { return target_.token_count; }
  const ParallelCounts& counts() const { return counts_; }

  // 16 hex digits over both tokenizers, the tokens and their division into pairs; not over names,
  // lines and places. Equal for the same pairs wherever they come from.
  const std::string& fingerprint() const { return fingerprint_; }

  const std::string& path() const { return file_->path(); }  // of the cache

  // Error{io} if somebody has cut the cache short: to be called now and then by those who read.
  void require_whole() const { file_->require_whole(); }

 private:
  ParallelCorpus() = default;
  friend struct ParallelCache;  // parallel_cache.h: reads and checks the file

  TokenSpan span(const ParallelSide& side, int64_t i) const;

  std::unique_ptr<SafetensorsFile> file_;
  ParallelSide source_;  // in the mapping, as lines_
  ParallelSide target_;
  const int64_t* lines_ = nullptr;
  ParallelCounts counts_;
  std::string fingerprint_;
};

}  // namespace rondo
