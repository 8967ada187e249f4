// Reads lines as they arrive.
#include "cli/engine/lines.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/limits.h"

namespace rondo::cli {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;

}  // namespace

LineReader::LineReader(const std::string& input) {
  if (input != "-") file_.emplace(input);
  count_lines();
}

// For a regular file on stdin: reads it once without moving the file offset.
void LineReader::count_lines() {
  struct stat about = {};
  if (file_.has_value() || fstat(STDIN_FILENO, &about) != 0 || !S_ISREG(about.st_mode)) return;
  off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
  std::vector<char> block(kReadBytes);
  char last = '\n';
  for (ssize_t got = 0; (got = pread(STDIN_FILENO, block.data(), block.size(), at)) > 0;
       at += got) {
    total_ += std::count(block.begin(), block.begin() + got, '\n');
    last = block[static_cast<size_t>(got) - 1];
  }
  if (last != '\n') ++total_;
}

bool LineReader::fill() {
  if (ended_) return false;
  buffer_.erase(0, start_);
  start_ = 0;
  const size_t held = buffer_.size();
  buffer_.resize(held + kReadBytes);
  ssize_t got = 0;
  if (file_.has_value()) {
    got = static_cast<ssize_t>(file_->read(buffer_.data() + held, kReadBytes));
  } else {
    do {
      got = ::read(STDIN_FILENO, buffer_.data() + held, kReadBytes);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
      throw Error(ExitCode::io,
                  fmt::format("standard input: cannot read: {}", std::strerror(errno)));
    }
  }
  buffer_.resize(held + static_cast<size_t>(got));
  ended_ = got == 0;
  return !ended_;
}

bool LineReader::more_waits() const {
  if (ended_) return false;
  if (file_.has_value()) return true;
  pollfd ready = {STDIN_FILENO, POLLIN, 0};
  return poll(&ready, 1, 0) > 0;
}

// Extracts one complete line from the buffer; false if there is none yet.
bool LineReader::next_line(std::string& line) {
  while (true) {
    const size_t end = buffer_.find('\n', start_);
    const bool whole = end != std::string::npos;
    const size_t stop = whole ? end : buffer_.size();
    if (!whole && !ended_ && stop - start_ <= kMaxLineBytes) return false;
    if (!whole && ended_ && start_ == buffer_.size()) return false;
    const bool rest = dropping_;
    dropping_ = !whole && !ended_;
    line = buffer_.substr(start_, std::min(stop - start_, kMaxLineBytes));
    if (stop - start_ > kMaxLineBytes && !rest) ++overlong_;
    start_ = whole ? end + 1 : stop;
    if (rest) continue;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (std::exchange(first_, false)) drop_byte_order_mark(line);
    return true;
  }
}

std::vector<std::string> LineReader::take(size_t most) {
  std::vector<std::string> lines;
  std::string line;
  while (lines.size() < most) {
    if (next_line(line)) {
      lines.push_back(line);
    } else if (ended_ || (!lines.empty() && !more_waits())) {
      break;
    } else {
      fill();
    }
  }
  return lines;
}

std::vector<std::string> LineReader::take_arrived(size_t most) {
  std::vector<std::string> lines;
  std::string line;
  while (lines.size() < most) {
    if (next_line(line)) {
      lines.push_back(line);
    } else if (more_waits()) {
      fill();
    } else {
      break;
    }
  }
  return lines;
}

}  // namespace rondo::cli
