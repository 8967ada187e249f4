// Text sources: files, folders and lists of files, plain or compressed, read as a byte stream in
// bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/base/progress.h"

namespace rondo {

// The byte order mark some programs put before UTF-8 text. Line readers drop it.
constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

constexpr size_t kMaxSources = 10'000'000;             // files of one corpus
constexpr int64_t kMaxListBytes = int64_t{256} << 20;  // of a .list file
constexpr int64_t kMaxSourceBytes = int64_t{1} << 30;  // of text held in memory at once
constexpr int kMaxZstdWindowLog = 27;                  // 128 MiB, zstd's own default limit

// Text typically compresses to between a third and a tenth. Output that exceeds both this size and
// this multiple of the compressed bytes read is a decompression bomb.
constexpr int64_t kMinBombBytes = int64_t{32} << 20;
constexpr int64_t kMaxExpansion = 200;

// The files `path` refers to, in order:
//   a folder       every regular file below it, sorted by path (bytewise); names that start with a
//                  dot are skipped, symbolic links are followed, except back to a parent folder
//   *.list         the paths in it, one per line, in its order, relative to the list's own folder;
//                  a folder among them stands for its files; empty lines are skipped
//   any other file itself
// Error{io} if something cannot be read, Error{bad_input} if a listed file does not exist or `path`
// is neither a file nor a folder. May be empty (a folder without files).
std::vector<std::string> list_sources(const std::string& path);

// All of one file's text or a range of it: from the first line that starts at or after byte `begin`
// of the decompressed text to the first that starts at or after `end`. (In a line longer than
// kMaxCutLine, the cut is between two characters.) Adjacent pieces neither overlap nor leave gaps.
struct TextPiece {
  std::string path;
  int64_t begin = 0;
  int64_t end = INT64_MAX;

  bool whole() const { return begin == 0 && end == INT64_MAX; }
};
constexpr size_t kMaxCutLine = size_t{1} << 16;

// The pieces `spec` refers to: a path as for list_sources(), optionally followed by a part
// (base/part_spec.h). Plain numbers count documents; percentages and NB count bytes of text over
// all documents: "novel.txt#:-5%", "books#-3:", "input.txt#:1000000B". Error{bad_input} if the
// result is empty.
std::vector<TextPiece> list_text(const std::string& spec);

// The text of one file as a stream. Files named .gz, .tgz or .zst are decompressed (all members or
// frames in sequence); any other is read as is. At most a window of it is in memory. Error{io} from
// the system; Error{bad_input} naming the file if compressed data are truncated, damaged, or expand
// beyond kMaxExpansion.
class TextReader {
 public:
  explicit TextReader(const std::string& path);
  explicit TextReader(const TextPiece& piece);
  ~TextReader();
  TextReader(TextReader&& other) noexcept;
  TextReader& operator=(TextReader&& other) noexcept;

  // Up to `size` bytes into `out`; 0 only at the end (or for size 0). A reader that threw must not
  // be used again.
  size_t read(char* out, size_t size);

  int64_t consumed() const;  // bytes of the file itself read so far, for progress
  const std::string& path() const { return path_; }

  class Stream;  // one per kind of file; internal

 private:
  size_t read_stream(char* out, size_t size);
  std::string_view look_ahead();
  size_t take(char* out, size_t size);

  std::string path_;
  std::unique_ptr<Stream> stream_;
  int64_t produced_ = 0;      // bytes taken from the stream
  int64_t at_ = 0;            // bytes of the text returned or skipped
  int64_t end_ = INT64_MAX;   // the end of the piece
  int64_t stop_ = INT64_MAX;  // where the text is cut, once known
  std::string ahead_;         // read from the stream but not returned yet, from `given_` on
  size_t given_ = 0;
};

// Removes the byte order mark from `line`, the first line of a file.
inline void drop_byte_order_mark(std::string& line) {
  if (line.compare(0, kUtf8Mark.size(), kUtf8Mark) == 0) {
    line.erase(0, kUtf8Mark.size());
  }
}

// All of one file's text. Error{bad_input} if it exceeds `max_bytes`, however small the compressed
// file is.
std::string read_source(const std::string& path, int64_t max_bytes = kMaxSourceBytes,
                        const ProgressOptions& shown = loading_progress());

}  // namespace rondo
