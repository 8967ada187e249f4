// Finding the files of a parallel text and reading them pair by pair.
#include "rondo/data/parallel_text.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <string_view>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/part_spec.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/data/cache_file.h"
#include "rondo/data/text_source.h"
#include "rondo/data/text_stream.h"

namespace rondo {
namespace {

constexpr size_t kLineBlockBytes = size_t{1} << 17;

bool is_there(const std::string& path) {
  struct stat info {};
  return path.find('\0') == std::string::npos && ::stat(path.c_str(), &info) == 0;
}

bool is_tsv_name(const std::string& name) {
  return has_suffix(name, ".tsv") || has_suffix(name, ".tsv.gz") || has_suffix(name, ".tsv.zst");
}

// A corpus is read again when it changes, so it must be a regular file, not a pipe.
const std::string& require_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected a file, got {}", printable(path, PATH_MAX),
                            S_ISDIR(info.st_mode) ? "a folder" : "a device, pipe or socket"),
                S_ISDIR(info.st_mode) ? "" : "write the text to a file first");
  }
  return path;
}

// The first of NAME, NAME.gz, NAME.zst that exists; otherwise "", and all of them are added to
// `missing`.
std::string find_variant(const std::string& name, std::vector<std::string>& missing) {
  const std::vector<std::string> variants = {name, name + ".gz", name + ".zst"};
  const auto found = std::find_if(variants.begin(), variants.end(), is_there);
  if (found == variants.end()) {
    missing.insert(missing.end(), variants.begin(), variants.end());
    return "";
  }
  return *found;
}

// Splits "a,b" at the first comma where both files exist; empty names if there is none.
ParallelFiles find_joined(const std::string& spec) {
  for (size_t comma = spec.find(','); comma != std::string::npos;
       comma = spec.find(',', comma + 1)) {
    ParallelFiles files{spec.substr(0, comma), spec.substr(comma + 1)};
    if (is_there(files.source) && is_there(files.target)) {
      return files;
    }
  }
  return {};
}

[[noreturn]] void fail_missing(const std::string& spec, const std::vector<std::string>& missing) {
  std::vector<std::string> names;
  names.reserve(missing.size());
  for (const std::string& name : missing) {
    names.push_back(printable(name, PATH_MAX));
  }
  throw Error(ExitCode::io,
              fmt::format("{}: parallel text not found: tried {}", printable(spec, PATH_MAX),
                          join(names, ", ")),
              is_there(spec) ? "give the common prefix of both file names, without the "
                               "language, or both files as SOURCE,TARGET"
                             : "give the common prefix of both file names, both files as "
                               "SOURCE,TARGET, or a .tsv");
}

// The files of `spec`, which must not specify a part.
ParallelFiles find_whole(const std::string& spec, const std::string& source_language,
                         const std::string& target_language) {
  const bool has_comma = spec.find(',') != std::string::npos;
  if (is_tsv_name(spec) && (is_there(spec) || !has_comma)) {
    if (!is_there(spec)) {
      fail_missing(spec, {spec});
    }
    return {require_file(spec), ""};
  }
  const ParallelFiles joined = find_joined(spec);
  if (!joined.source.empty()) {
    return {require_file(joined.source), require_file(joined.target)};
  }
  std::vector<std::string> missing;
  const std::string source = find_variant(spec + "." + source_language, missing);
  const std::string target = find_variant(spec + "." + target_language, missing);
  if (!missing.empty()) {
    if (has_comma) {  // more likely two paths
      missing = split(spec, ',');
      missing.erase(std::remove_if(missing.begin(), missing.end(), is_there), missing.end());
    }
    fail_missing(spec, missing);
  }
  return {require_file(source), require_file(target)};
}

}  // namespace

ParallelFiles find_parallel(const std::string& spec, const std::string& source_language,
                            const std::string& target_language) {
  const PartSpec part = parse_part(spec);
  ParallelFiles files = find_whole(part.path, source_language, target_language);
  if (!part.is_part) return files;
  if (part.by_class || part.uses(PartEnd::Unit::bytes)) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: sentence pairs cannot be selected by class or by bytes",
                            printable(spec, PATH_MAX)),
                "count lines, or give a percentage");
  }
  const int64_t pairs = pairs_in(files);
  files.first_line = part_place(part.first, pairs, 0);
  files.last_line = part_place(part.last, pairs, pairs);
  if (files.first_line >= files.last_line) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: the part selects none of {}", printable(spec, PATH_MAX),
                            counted(pairs, "sentence pair")),
                "choose another part");
  }
  return files;
}

int64_t pairs_in(const ParallelFiles& files) {
  PairReader reader(files);
  int64_t total = 0;
  for (const std::string& file : {files.source, files.target}) {
    struct stat info {};
    if (!file.empty() && ::stat(file.c_str(), &info) == 0) total += info.st_size;
  }
  Progress progress("counting sentence pairs", total, loading_progress());
  std::string source;
  std::string target;
  while (reader.next(source, target)) progress.update(reader.consumed());
  progress.finish();
  return reader.line();
}

// The lines of one file, or their first two columns.
class PairReader::Lines {
 public:
  explicit Lines(const std::string& path) : reader_(path), block_(kLineBlockBytes) {}

  // The next line into `first`; if `second` is given, the first column into `first` and the second
  // into `second`. False at the end.
  bool next(std::string& first, std::string* second) {
    first.clear();
    if (second != nullptr) {
      second->clear();
    }
    field_ = &first;
    tabs_ = 0;
    dropped_ = false;
    over_long_ = false;
    if (at_ == filled_ && !refill()) {
      return false;
    }
    while (true) {
      const std::string_view rest(block_.data() + at_, filled_ - at_);
      const size_t end = rest.find('\n');
      add(rest.substr(0, end), second);
      if (end != std::string_view::npos) {
        at_ += end + 1;
        break;
      }
      if (!refill()) {
        break;
      }
    }
    if (count_++ == 0) {
      drop_byte_order_mark(first);
    }
    if (field_ != nullptr && !dropped_ && !field_->empty() && field_->back() == '\r') {
      field_->pop_back();
    }
    limit(first);
    if (second != nullptr) {
      limit(*second);
    }
    return true;
  }

  int64_t count_all() {  // reads to the end
    std::string line;
    while (next(line, nullptr)) {
    }
    return count_;
  }

  int64_t tabs() const { return tabs_; }  // in the last line returned; counted up to 2
  bool over_long() const { return over_long_; }
  int64_t consumed() const { return reader_.consumed(); }
  uint64_t hash() const { return hash_.value(); }

 private:
  bool refill() {
    at_ = 0;
    filled_ = ended_ ? 0 : reader_.read(block_.data(), block_.size());
    ended_ = filled_ == 0;
    hash_.add(block_.data(), filled_);
    return !ended_;
  }

  // Adds part of a line, split at tabs if `second` is given.
  void add(std::string_view text, std::string* second) {
    while (second != nullptr && field_ != nullptr) {
      const size_t tab = text.find('\t');
      if (tab == std::string_view::npos) {
        break;
      }
      hold(text.substr(0, tab), *field_);
      text.remove_prefix(tab + 1);
      field_ = tabs_ == 0 ? second : nullptr;
      dropped_ = false;
      ++tabs_;
    }
    if (field_ != nullptr) {
      hold(text, *field_);
    }
  }

  // Keeps one byte beyond the limit, since it may be a '\r' that is dropped.
  void hold(std::string_view text, std::string& field) {
    const size_t room = kMaxLineBytes + 1 - field.size();
    field.append(text.substr(0, room));
    dropped_ = dropped_ || text.size() > room;
  }

  void limit(std::string& field) {
    if (field.size() > kMaxLineBytes) {
      field.resize(kMaxLineBytes);
      over_long_ = true;
    }
  }

  TextReader reader_;
  TextHash hash_;
  std::vector<char> block_;
  size_t at_ = 0;
  size_t filled_ = 0;
  bool ended_ = false;
  int64_t count_ = 0;
  std::string* field_ = nullptr;  // the current field; null: beyond the wanted columns
  int64_t tabs_ = 0;
  bool dropped_ = false;  // part of the field was dropped
  bool over_long_ = false;
};

PairReader::PairReader(const ParallelFiles& files)
    : files_(files), source_(std::make_unique<Lines>(files.source)) {
  if (!files.target.empty()) {
    target_ = std::make_unique<Lines>(files.target);
  }
}
PairReader::~PairReader() = default;
PairReader::PairReader(PairReader&& other) noexcept = default;
PairReader& PairReader::operator=(PairReader&& other) noexcept = default;

bool PairReader::next(std::string& source, std::string& target) {
  while (skipped_ < files_.first_line) {
    if (!next_line(source, target)) return false;
    ++skipped_;
  }
  if (skipped_ + line_ >= files_.last_line || !next_line(source, target)) {
    source.clear();
    target.clear();
    return false;
  }
  ++line_;
  return true;
}

bool PairReader::next_line(std::string& source, std::string& target) {
  const bool more = source_->next(source, target_ ? nullptr : &target);
  if (target_ && target_->next(target, nullptr) != more) {
    const int64_t sources = source_->count_all();
    const int64_t targets = target_->count_all();
    throw Error(ExitCode::bad_input,
                fmt::format("{} has {} lines, but {} has {}: they must be aligned line by line",
                            printable(files_.source, PATH_MAX), with_commas(sources),
                            printable(files_.target, PATH_MAX), with_commas(targets)),
                "check that neither is truncated and that both belong to the same text");
  }
  if (!more) {
    return false;
  }
  if (!target_ && source_->tabs() == 0) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}:{}: expected source TAB target, got a line without a tab",
                            printable(files_.source, PATH_MAX), skipped_ + line_ + 1));
  }
  over_long_ = source_->over_long() || (target_ && target_->over_long());
  return true;
}

int64_t PairReader::consumed() const {
  return source_->consumed() + (target_ ? target_->consumed() : 0);
}

uint64_t PairReader::source_hash() const { return source_->hash(); }

uint64_t PairReader::target_hash() const { return target_ ? target_->hash() : 0; }

}  // namespace rondo
