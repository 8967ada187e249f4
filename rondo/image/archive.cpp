// Tar headers, IDX headers and CIFAR records.
#include "rondo/image/archive.h"

#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <optional>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/data/text_source.h"

namespace rondo {
namespace {

constexpr size_t kTarBlock = 512;
constexpr size_t kMaxTarNameBytes = 65536;  // of the GNU and pax records for long names

[[noreturn]] void refuse_archive(const std::string& source, const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", printable(source, PATH_MAX), what),
              "download the file again");
}

// Up to the first NUL.
std::string_view tar_text(std::string_view field) {
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

// A decimal number; nullopt if it is not one or does not fit.
std::optional<size_t> decimal_size(std::string_view digits) {
  if (digits.empty() || digits.size() > 18) {
    return std::nullopt;
  }
  size_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    value = value * 10 + static_cast<size_t>(c - '0');
  }
  return value;
}

// One pass over an archive, applying long-name records to the file that follows.
class TarWalker {
 public:
  TarWalker(std::string_view archive, const std::string& source)
      : archive_(archive), source_(source) {}

  std::vector<TarEntry> walk(Progress& progress) {
    while (at_ < archive_.size()) {
      const std::string_view header = archive_.substr(at_, kTarBlock);
      if (header.size() < kTarBlock) {
        refuse("is truncated within a header");
      }
      if (header.find_first_not_of('\0') == std::string_view::npos) {
        break;  // a block of zeros marks the end
      }
      at_ += kTarBlock;
      member(header);
      progress.update(static_cast<int64_t>(at_));
    }
    return std::move(entries_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    refuse_archive(source_, fmt::format("the tar archive {} (byte {})", what,
                                        with_commas(static_cast<int64_t>(at_))));
  }

  // Octal digits padded with spaces and NULs; or, marked by the top bit, GNU's binary format.
  size_t number(std::string_view field) const {
    if ((static_cast<uint8_t>(field[0]) & 0x80U) != 0) {
      size_t value = static_cast<uint8_t>(field[0]) & 0x3FU;
      for (const char c : field.substr(1)) {
        if (value > (SIZE_MAX >> 8U)) {
          refuse("is damaged: a size is out of range");
        }
        value = value << 8U | static_cast<uint8_t>(c);
      }
      return value;
    }
    size_t value = 0;
    for (const char c : field) {
      if (c >= '0' && c <= '7') {
        value = value << 3U | static_cast<size_t>(c - '0');
      } else if (c != ' ' && c != '\0') {
        refuse("is damaged: a number is not octal");
      }
    }
    return value;
  }

  void check_sum(std::string_view header) const {
    constexpr size_t kSumAt = 148;
    constexpr size_t kSumBytes = 8;
    size_t sum = kSumBytes * ' ';  // the field itself counts as spaces
    for (size_t i = 0; i < kTarBlock; ++i) {
      if (i < kSumAt || i >= kSumAt + kSumBytes) {
        sum += static_cast<uint8_t>(header[i]);
      }
    }
    if (sum != number(header.substr(kSumAt, kSumBytes))) {
      refuse("is damaged, or the file is not a tar archive: a header checksum is wrong");
    }
  }

  void member(std::string_view header) {
    check_sum(header);
    const char type = header[156];
    size_t size = number(header.substr(124, 12));
    const bool describes_next = type == 'L' || type == 'K' || type == 'x' || type == 'g';
    if (long_size_ && !describes_next) {
      size = *long_size_;
    }
    if (size > archive_.size() - at_) {
      refuse("is truncated within a file");
    }
    const std::string_view body = archive_.substr(at_, size);
    if (describes_next) {
      describe_next(type, body);
    } else {
      if (type == '0' || type == '\0' || type == '7') {
        add_file(header, size);
      }
      long_name_.reset();
      long_size_.reset();
    }
    const size_t blocks = (size + kTarBlock - 1) / kTarBlock * kTarBlock;
    at_ += std::min(blocks, archive_.size() - at_);
  }

  void describe_next(char type, std::string_view body) {
    if (type == 'K' || type == 'g') {
      return;  // a link name, or global settings, which are not needed
    }
    if (body.size() > kMaxTarNameBytes) {
      refuse("is damaged: a name record is too long");
    }
    if (type == 'L') {
      long_name_ = std::string(tar_text(body));
      return;
    }
    // pax: records "LENGTH KEY=VALUE\n", where the length counts the whole record.
    while (!body.empty()) {
      const size_t space = body.find(' ');
      const std::optional<size_t> length =
          space == std::string_view::npos ? std::nullopt : decimal_size(body.substr(0, space));
      if (!length || *length <= space + 1 || *length > body.size()) {
        refuse("is damaged: a pax record has the wrong length");
      }
      const std::string_view record = body.substr(space + 1, *length - space - 2);
      body.remove_prefix(*length);
      const size_t equals = record.find('=');
      if (record.substr(0, equals) == "path" && equals != std::string_view::npos) {
        long_name_ = std::string(tar_text(record.substr(equals + 1)));
      } else if (record.substr(0, equals) == "size" && equals != std::string_view::npos) {
        long_size_ = decimal_size(record.substr(equals + 1));
        if (!long_size_) {
          refuse("is damaged: a pax size is not a number");
        }
      }
    }
  }

  void add_file(std::string_view header, size_t size) {
    if (entries_.size() >= kMaxSources) {
      refuse("contains too many files");
    }
    TarEntry entry;
    if (long_name_) {
      entry.name = *long_name_;
    } else {
      // ustar stores the beginning of a long name separately; GNU's older magic has other data
      // there.
      const bool ustar = header.substr(257, 6) == std::string_view("ustar\0", 6);
      const std::string_view prefix = ustar ? tar_text(header.substr(345, 155)) : "";
      entry.name = std::string(prefix) + (prefix.empty() ? "" : "/") +
                   std::string(tar_text(header.substr(0, 100)));
    }
    while (entry.name.compare(0, 2, "./") == 0) {
      entry.name.erase(0, 2);
    }
    entry.begin = at_;
    entry.size = size;
    if (!entry.name.empty() && entry.name.back() != '/') {  // v7 marks folders with a slash
      entries_.push_back(std::move(entry));
    }
  }

  std::string_view archive_;
  const std::string& source_;
  size_t at_ = 0;
  std::optional<std::string> long_name_;
  std::optional<size_t> long_size_;
  std::vector<TarEntry> entries_;
};

bool labels_below(std::string_view bytes, size_t record, size_t label_at, int64_t classes) {
  for (size_t at = label_at; at < bytes.size(); at += record) {
    if (static_cast<uint8_t>(bytes[at]) >= classes) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<TarEntry> list_tar(std::string_view archive, const std::string& source,
                               const ProgressOptions& shown) {
  Progress progress("listing " + std::filesystem::path(source).filename().string(),
                    static_cast<int64_t>(archive.size()), shown);
  std::vector<TarEntry> entries = TarWalker(archive, source).walk(progress);
  progress.finish();
  return entries;
}

IdxArray parse_idx(std::string_view bytes, const std::string& source) {
  constexpr uint8_t kUnsignedBytes = 0x08;
  constexpr size_t kMaxAxes = 4;
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(bytes[at]); };
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0) {
    refuse_archive(source, "expected an IDX file, which starts with two zero bytes");
  }
  const size_t axes = byte(3);
  if (byte(2) != kUnsignedBytes || axes < 1 || axes > kMaxAxes) {
    refuse_archive(source, fmt::format("expected an IDX array of unsigned bytes (type 8) with 1 to "
                                       "{} axes, got type {} with {} axes",
                                       kMaxAxes, byte(2), axes));
  }
  IdxArray array;
  array.begin = 4 + 4 * axes;
  if (bytes.size() < array.begin) {
    refuse_archive(source, "the IDX file is truncated within its header");
  }
  const size_t values = bytes.size() - array.begin;
  size_t expected = 1;
  for (size_t axis = 0; axis < axes; ++axis) {
    const size_t at = 4 + 4 * axis;
    const size_t extent = static_cast<size_t>(byte(at)) << 24U | byte(at + 1) << 16U |
                          byte(at + 2) << 8U | byte(at + 3);
    // At most `values` so far, and an extent below 2^32: no overflow.
    expected = expected > values ? expected : expected * extent;
    array.shape.push_back(static_cast<int64_t>(extent));
  }
  if (expected == 0 || expected != values) {
    refuse_archive(source, fmt::format("the IDX header implies {} values, the file has {}",
                                       expected > values ? "more" : std::to_string(expected),
                                       with_commas(static_cast<int64_t>(values))));
  }
  return array;
}

CifarRecords parse_cifar(std::string_view bytes, const std::string& source) {
  constexpr size_t kPixels = 3 * kCifarSide * kCifarSide;
  const CifarRecords kinds[] = {{0, kPixels + 1, 0, 10}, {0, kPixels + 2, 1, 100}};
  for (CifarRecords kind : kinds) {
    if (!bytes.empty() && bytes.size() % kind.record == 0 &&
        labels_below(bytes, kind.record, kind.label_at, kind.classes)) {
      kind.count = static_cast<int64_t>(bytes.size() / kind.record);
      return kind;
    }
  }
  refuse_archive(source, fmt::format("expected CIFAR records of {} bytes with labels below 10, or "
                                     "of {} bytes with labels below 100; got {} bytes",
                                     kinds[0].record, kinds[1].record,
                                     with_commas(static_cast<int64_t>(bytes.size()))));
}

}  // namespace rondo
