// Where text comes from: files, folders and lists of files, plain or compressed, read as a stream
// of bytes in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// What some programs put before UTF-8 text. It is no part of the text: readers of lines drop it.
constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

constexpr size_t kMaxSources = 10'000'000;             // files of one corpus
constexpr int64_t kMaxListBytes = int64_t{256} << 20;  // of a .list file
constexpr int64_t kMaxSourceBytes = int64_t{1} << 30;  // of text held in memory at once
constexpr int kMaxZstdWindowLog = 27;                  // 128 MiB, zstd's own default limit

// Text shrinks to a third or a tenth. What has become so much, and so many times as much as the
// compressed bytes read for it, is a decompression bomb.
constexpr int64_t kMinBombBytes = int64_t{32} << 20;
constexpr int64_t kMaxExpansion = 200;

// The files that `path` stands for, in order:
//   a folder       every regular file below it, sorted by path (bytewise); names that begin with a
//                  dot are skipped, symbolic links are followed, a folder within itself is not
//   *.list         the paths in it, one per line, in its order, relative to the list's own folder;
//                  a path that is a folder stands for its files; empty lines are skipped
//   another file   itself
// Error{io} if something cannot be read, Error{bad_input} if a listed file does not exist or
// `path` is neither file nor folder. May be empty (a folder without files).
std::vector<std::string> list_sources(const std::string& path);

// All of one file's text, or a stretch of it: from the first line that begins at or after byte
// `begin` of the decompressed text to the first that begins at or after `end`. (Where a line is
// longer than kMaxCutLine, the cut is between two characters.) So pieces that adjoin share nothing
// and leave nothing out.
struct TextPiece {
  std::string path;
  int64_t begin = 0;
  int64_t end = INT64_MAX;

  bool whole() const { return begin == 0 && end == INT64_MAX; }
};
constexpr size_t kMaxCutLine = size_t{1} << 16;

// What `spec` stands for: a path as for list_sources(), and after it a part if one is wanted
// (base/part_spec.h). Plain numbers count documents, percentages and NB bytes of text, all
// documents taken together: "novel.txt#:-5%", "books#-3:", "input.txt#:1000000B".
// Error{bad_input} if nothing is left.
std::vector<TextPiece> list_text(const std::string& spec);

// The text of one file as a stream. A name that ends in .gz or .zst is decompressed (all members
// or frames, one after the other); any other is read as it is. No more than a window of it is in
// memory. Error{io} from the system; Error{bad_input} naming the file if compressed data are cut
// short, damaged, or expand beyond kMaxExpansion.
class TextReader {
 public:
  explicit TextReader(const std::string& path);
  explicit TextReader(const TextPiece& piece);
  ~TextReader();
  TextReader(TextReader&& other) noexcept;
  TextReader& operator=(TextReader&& other) noexcept;

  // Up to `size` bytes into `out`; 0 only at the end (or for size 0). A reader that threw is spent.
  size_t read(char* out, size_t size);

  int64_t consumed() const;  // bytes of the file itself taken so far, for progress
  const std::string& path() const { return path_; }

  class Stream;  // one per kind of file; internal

 private:
  size_t read_stream(char* out, size_t size);
  std::string_view look_ahead();
  size_t take(char* out, size_t size);

  std::string path_;
  std::unique_ptr<Stream> stream_;
  int64_t produced_ = 0;      // bytes taken from the stream
  int64_t at_ = 0;            // bytes of the text given or skipped
  int64_t end_ = INT64_MAX;   // as the piece has it
  int64_t stop_ = INT64_MAX;  // where the text is cut, once that is known
  std::string ahead_;         // read from the stream but not given, from `given_` on
  size_t given_ = 0;
};

// `line`, the first of a file, without the byte order mark.
inline void drop_byte_order_mark(std::string& line) {
  if (line.compare(0, kUtf8Mark.size(), kUtf8Mark) == 0) {
    line.erase(0, kUtf8Mark.size());
  }
}

// All of one file's text. Error{bad_input} if that is more than `max_bytes`, however small the
// compressed file.
std::string read_source(const std::string& path, int64_t max_bytes = kMaxSourceBytes);

}  // namespace rondo
