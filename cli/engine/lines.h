// Lines of text as they arrive, without a byte order mark: from a pipe as many as are there, so
// that whoever types or feeds one line at a time gets an answer to each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rondo/data/text_source.h"

namespace rondo::cli {

class LineReader {
 public:
  // A file (plain, .gz, .zst), or "-" for stdin.
  explicit LineReader(const std::string& input);

  // At least one line (it waits for that), at most `most`, without their ends; none at the end of
  // the input. From a pipe, no more than have arrived.
  std::vector<std::string> take(size_t most);

  // The same without waiting: also none when nothing has arrived yet.
  std::vector<std::string> take_arrived(size_t most);

  // How many lines there will be, where that can be known without waiting; 0 otherwise.
  int64_t total() const { return total_; }
  int64_t overlong() const { return overlong_; }

 private:
  bool fill();  // reads more; false at the end
  bool more_waits() const;
  bool next_line(std::string& line);
  void count_lines();

  std::optional<TextReader> file_;  // unset: stdin
  std::string buffer_;
  size_t start_ = 0;  // of what is not taken yet
  bool ended_ = false;
  bool first_ = true;      // no line was taken yet
  bool dropping_ = false;  // within the rest of an overlong line
  int64_t total_ = 0;
  int64_t overlong_ = 0;
};

}  // namespace rondo::cli
