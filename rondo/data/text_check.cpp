// Checking monolingual and parallel text.
#include "rondo/data/text_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "rondo/base/file_kind.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/data/cache_file.h"
#include "rondo/data/text_source.h"

namespace rondo {
namespace {

// Lines are compared by hash; lines beyond this number are not remembered.
constexpr size_t kMostRemembered = 50'000'000;
constexpr size_t kMostListed = 100;
constexpr int64_t kShortSide = 20;  // bytes

uint64_t hash_of(std::string_view text) {
  TextHash hash;
  hash.add(text);
  return hash.value();
}

// Whether it was already in the set.
bool seen_before(std::unordered_set<uint64_t>& seen, uint64_t hash) {
  if (seen.size() < kMostRemembered) return !seen.insert(hash).second;
  return seen.count(hash) > 0;
}

int64_t count_words(std::string_view line) {
  int64_t words = 0;
  bool inside = false;
  for (const char c : line) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    words += !space && !inside ? 1 : 0;
    inside = !space;
  }
  return words;
}

class TextChecker {
 public:
  void add(const TextPiece& piece) {
    ++check_.files;
    TextReader reader(piece);
    std::vector<char> block(size_t{1} << 18);
    TextHash whole;
    int64_t bytes = 0;
    line_ = 0;
    bad_line_ = 0;
    held_.clear();
    while (const size_t got = reader.read(block.data(), block.size())) {
      const std::string_view text(block.data(), got);
      if (bytes == 0) {
        const FileLook look = look_at_bytes(text.substr(0, size_t{1} << 16), piece.path);
        if (look.kind != FileKind::text && look.kind != FileKind::toml &&
            look.kind != FileKind::json) {
          check_.binary.push_back({piece.path, 0, look.what});
          return;
        }
      }
      bytes += static_cast<int64_t>(got);
      whole.add(text);
      add_block(text);
    }
    if (!held_.empty()) add_line(held_);
    finish_file(piece.path, bytes, whole.value());
  }

  TextCheck take() { return std::move(check_); }

 private:
  void add_block(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      if (end == std::string_view::npos) {
        held_.append(text);
        return;
      }
      if (held_.empty()) {
        add_line(text.substr(0, end));
      } else {
        held_.append(text.substr(0, end));
        add_line(held_);
        held_.clear();
      }
      text.remove_prefix(end + 1);
    }
  }

  void add_line(std::string_view line) {
    ++line_;
    ++check_.lines;
    check_.longest_line = std::max(check_.longest_line, static_cast<int64_t>(line.size()));
    if (is_blank(line)) {
      ++check_.blank_lines;
      return;
    }
    check_.words += count_words(line);
    if (bad_line_ == 0 && !valid_utf8(line)) bad_line_ = line_;
    if (seen_before(lines_, hash_of(line))) ++check_.duplicate_lines;
  }

  void finish_file(const std::string& path, int64_t bytes, uint64_t content) {
    check_.bytes += bytes;
    if (bad_line_ > 0) check_.not_utf8.push_back({path, bad_line_, "is not UTF-8"});
    if (bytes == 0) {
      ++check_.empty_files;
      return;
    }
    check_.shortest_file =
        check_.shortest_file == 0 ? bytes : std::min(check_.shortest_file, bytes);
    check_.longest_file = std::max(check_.longest_file, bytes);
    const auto [first, is_new] = contents_.emplace(content, path);
    if (is_new) return;
    ++check_.duplicate_files;
    check_.duplicates.push_back({path, 0, "identical to " + first->second});
  }

  TextCheck check_;
  std::unordered_set<uint64_t> lines_;
  std::unordered_map<uint64_t, std::string> contents_;
  std::string held_;  // the beginning of a line that continues in the next block
  int64_t line_ = 0;
  int64_t bad_line_ = 0;
};

}  // namespace

TextCheck check_text(const std::string& spec) {
  const std::vector<TextPiece> pieces = list_text(spec);
  TextChecker checker;
  ProgressOptions shown;
  shown.delay = 2;
  Progress progress("checking text", static_cast<int64_t>(pieces.size()), shown);
  for (size_t i = 0; i < pieces.size(); ++i) {
    checker.add(pieces[i]);
    progress.update(static_cast<int64_t>(i) + 1);
  }
  progress.finish();
  return checker.take();
}

PairCheck check_pairs(const ParallelFiles& files) {
  PairCheck check;
  PairReader reader(files);
  std::string source;
  std::string target;
  std::unordered_set<uint64_t> seen;
  ProgressOptions shown;
  shown.delay = 2;
  int64_t total = 0;
  for (const std::string& file : {files.source, files.target}) {
    std::error_code ignored;
    if (!file.empty()) total += static_cast<int64_t>(std::filesystem::file_size(file, ignored));
  }
  Progress progress("checking pairs", total, shown);
  while (reader.next(source, target)) {
    ++check.pairs;
    const auto a = static_cast<int64_t>(source.size());
    const auto b = static_cast<int64_t>(target.size());
    check.source_bytes += a;
    check.target_bytes += b;
    check.longest_source = std::max(check.longest_source, a);
    check.longest_target = std::max(check.longest_target, b);
    const bool empty = is_blank(source) || is_blank(target);
    check.empty += empty ? 1 : 0;
    check.identical += !empty && source == target ? 1 : 0;
    const bool unequal = std::max(a, b) > kShortSide && std::max(a, b) > 3 * std::min(a, b);
    check.unequal += !empty && unequal ? 1 : 0;
    if (seen_before(seen, hash_of(fmt::format("{}\n{}", source, target)))) ++check.duplicates;
    if (!valid_utf8(source) || !valid_utf8(target)) {
      ++check.not_utf8_lines;
      const std::string& file = valid_utf8(source) ? files.target : files.source;
      if (check.not_utf8.size() < kMostListed) {
        check.not_utf8.push_back(
            {file.empty() ? files.source : file, files.first_line + reader.line(), "is not UTF-8"});
      }
    }
    progress.update(reader.consumed());
  }
  progress.finish();
  return check;
}

}  // namespace rondo
