// Lines of text as they arrive, without a byte order mark: from a pipe, as many as are available,
// so that interactive input gets an answer line by line.
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

  // At least one line (blocks until then) and up to `most`, without line ends; none at the end of
  // the input. From a pipe, no more than have arrived.
  std::vector<std::string> take(size_t most);

  // The same without blocking: also none if nothing has arrived yet.
  std::vector<std::string> take_arrived(size_t most);

  // The total number of lines if it is known without blocking; 0 otherwise.
  int64_t total() const { return total_; }
  int64_t overlong() const { return overlong_; }

 private:
  bool fill();  // reads more; false at the end
  bool more_waits() const;
  bool next_line(std::string& line);
  void count_lines();

  std::optional<TextReader> file_;  // unset: stdin
  std::string buffer_;
  size_t start_ = 0;  // of what is not consumed yet
  bool ended_ = false;
  bool first_ = true;      // no line was consumed yet
  bool dropping_ = false;  // within the rest of an overlong line
  int64_t total_ = 0;
  int64_t overlong_ = 0;
};

}  // namespace rondo::cli
