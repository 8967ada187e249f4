// Parts of texts: which bytes of which files, and reading them.
#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <filesystem>

#include "rondo/base/error.h"
#include "rondo/base/part_spec.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/data/text_source.h"
#include "rondo/data/text_stream.h"

namespace rondo {
namespace {

// Where to cut a text, given the bytes `around` from just before the requested position: after the
// first line that ends there, or between characters if none does.
size_t line_cut(std::string_view around) {
  const size_t line_end = around.find('\n');
  if (line_end != std::string_view::npos) return line_end + 1;
  if (around.size() <= kMaxCutLine) return around.size();  // the text ends before the line does
  size_t at = 1;
  while (at < 4 && (static_cast<uint8_t>(around[at]) & 0xC0U) == 0x80U) ++at;
  return at;
}

// The size of a file's decompressed text.
int64_t text_bytes(const std::string& path) {
  if (!has_suffix(path, ".gz") && !has_suffix(path, ".zst")) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (error) fail_source_io(path, "look up", error.value());
    return static_cast<int64_t>(size);
  }
  TextReader reader(path);
  std::vector<char> block(size_t{1} << 20);
  int64_t size = 0;
  std::error_code unknown;  // the size of the file itself
  const uintmax_t total = std::filesystem::file_size(path, unknown);
  Progress progress("measuring " + std::filesystem::path(path).filename().string(),
                    unknown ? 0 : static_cast<int64_t>(total), loading_progress());
  while (const size_t got = reader.read(block.data(), block.size())) {
    size += static_cast<int64_t>(got);
    progress.update(reader.consumed());
  }
  progress.finish();
  return size;
}

// The byte offset of `end` in the whole text. `starts`: where each file starts, and the total.
int64_t byte_place(const std::optional<PartEnd>& end, const std::vector<int64_t>& starts,
                   int64_t otherwise) {
  if (end && end->unit == PartEnd::Unit::items) {
    const auto files = static_cast<int64_t>(starts.size()) - 1;
    return starts[static_cast<size_t>(part_place(end, files, 0))];
  }
  return part_place(end, starts.back(), otherwise);
}

}  // namespace

std::vector<TextPiece> list_text(const std::string& spec) {
  const PartSpec part = parse_part(spec);
  const std::vector<std::string> files = list_sources(part.path);
  std::vector<TextPiece> pieces;
  if (!part.is_part) {
    for (const std::string& file : files) pieces.push_back({file});
    return pieces;
  }
  if (part.by_class) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: text has no classes", printable(spec, PATH_MAX)), "omit '/class'");
  }
  std::vector<int64_t> starts = {0};
  for (const std::string& file : files) starts.push_back(starts.back() + text_bytes(file));
  const int64_t first = byte_place(part.first, starts, 0);
  const int64_t last = byte_place(part.last, starts, starts.back());
  for (size_t i = 0; i < files.size(); ++i) {
    const int64_t begin = std::max(first, starts[i]);
    const int64_t end = std::min(last, starts[i + 1]);
    if (begin >= end) continue;
    pieces.push_back(
        {files[i], begin - starts[i], end == starts[i + 1] ? INT64_MAX : end - starts[i]});
  }
  if (pieces.empty()) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("{}: the part selects none of {} of text", printable(spec, PATH_MAX),
                    human_bytes(starts.back())),
        "choose another part; a plain number counts documents, 5% is a fraction of the text");
  }
  return pieces;
}

TextReader::TextReader(const TextPiece& piece) : TextReader(piece.path) {
  end_ = piece.end;
  if (piece.begin == 0) return;
  std::vector<char> block(size_t{1} << 20);
  while (at_ < piece.begin - 1) {
    const auto left = static_cast<size_t>(piece.begin - 1 - at_);
    if (take(block.data(), std::min(left, block.size())) == 0) return;
  }
  given_ = line_cut(look_ahead());
  at_ += static_cast<int64_t>(given_);
}

// The next bytes, without consuming them: enough to decide where to cut, or all that are left.
std::string_view TextReader::look_ahead() {
  const size_t wanted = kMaxCutLine + 1;
  ahead_.erase(0, given_);
  given_ = 0;
  while (ahead_.size() < wanted) {
    const size_t before = ahead_.size();
    ahead_.resize(wanted);
    const size_t got = read_stream(ahead_.data() + before, wanted - before);
    ahead_.resize(before + got);
    if (got == 0) break;
  }
  return std::string_view(ahead_).substr(0, wanted);
}

size_t TextReader::take(char* out, size_t size) {
  size_t got = std::min(size, ahead_.size() - given_);
  if (got > 0) {
    std::copy_n(ahead_.data() + given_, got, out);
    given_ += got;
  } else {
    got = read_stream(out, size);
  }
  at_ += static_cast<int64_t>(got);
  return got;
}

size_t TextReader::read(char* out, size_t size) {
  if (at_ < end_ - 1)
    return take(out,
                static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(size), end_ - 1 - at_)));
  if (stop_ == INT64_MAX) {
    // Already beyond the cut: the piece starts with the line it ends with.
    stop_ = at_ > end_ - 1 ? at_ : at_ + static_cast<int64_t>(line_cut(look_ahead()));
  }
  return take(out, static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(size), stop_ - at_)));
}

}  // namespace rondo
