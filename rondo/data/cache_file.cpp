// Common parts of the caches of tokenized text.
#include "rondo/data/cache_file.h"

#include <fmt/core.h>
#include <sys/stat.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <filesystem>
#include <new>
#include <system_error>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/data/text_source.h"
#include "rondo/data/text_stream.h"

namespace rondo {
namespace {

// A file modified this close to the time of reading may have been modified again within the clock's
// resolution (2 s on FAT), so its timestamp alone proves nothing.
constexpr int64_t kClockSlack = 2'000'000'000;  // nanoseconds

template <class Number>
std::optional<Number> parse_number(std::string_view text, int base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

uint64_t text_hash_of(const std::string& path) {
  TextReader reader(path);
  TextHash hash;
  std::vector<char> block(size_t{1} << 20);
  while (const size_t got = reader.read(block.data(), block.size())) {
    hash.add(block.data(), got);
  }
  return hash.value();
}

template <class Token>
void widen(const uint8_t* data, int64_t first, int64_t count, int64_t* out) {
  const auto* tokens = reinterpret_cast<const Token*>(data) + first;
  for (int64_t i = 0; i < count; ++i) {
    out[i] = tokens[i];
  }
}

}  // namespace

std::optional<std::string_view> take_until(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view front = text.substr(0, end);
  text.remove_prefix(end + 1);
  return front;
}

TextHash::TextHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) {
    throw std::bad_alloc();
  }
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_));
}

TextHash::~TextHash() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void TextHash::add(const void* data, size_t size) {
  if (size > 0) {
    XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), data, size);
  }
}

uint64_t TextHash::value() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_));
}

SourceStamp stamp_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    fail_source_io(path, "look up", errno);
  }
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {path, int64_t{info.st_size},
          int64_t{info.st_mtim.tv_sec} * kNanoseconds + int64_t{info.st_mtim.tv_nsec}, 0};
}

std::string manifest_text(const std::vector<SourceStamp>& stamps) {
  std::string text;
  for (const SourceStamp& stamp : stamps) {
    text += fmt::format("{} {} {:016x} ", stamp.size, stamp.modified, stamp.content);
    text += stamp.path;
    text.push_back('\0');
  }
  return text;
}

std::optional<std::vector<SourceStamp>> parse_manifest(std::string_view text) {
  std::vector<SourceStamp> stamps;
  while (!text.empty()) {
    const auto size = take_until(text, ' ');
    const auto modified = take_until(text, ' ');
    const auto content = take_until(text, ' ');
    const auto path = take_until(text, '\0');
    if (!size || !modified || !content || !path) {
      return std::nullopt;
    }
    const auto size_value = parse_number<int64_t>(*size, 10);
    const auto modified_value = parse_number<int64_t>(*modified, 10);
    const auto content_value = parse_number<uint64_t>(*content, 16);
    if (!size_value || !modified_value || !content_value) {
      return std::nullopt;
    }
    stamps.push_back({std::string(*path), *size_value, *modified_value, *content_value});
  }
  return stamps;
}

bool sources_unchanged(std::string_view manifest, const std::string& built,
                       const std::vector<std::string>& files) {
  const auto stamps = parse_manifest(manifest);
  const auto began = parse_number<int64_t>(built, 10);
  if (!stamps || !began || stamps->size() != files.size()) {
    return false;
  }
  std::vector<size_t> doubtful;
  for (size_t i = 0; i < files.size(); ++i) {
    const SourceStamp& then = (*stamps)[i];
    const SourceStamp now = stamp_of(files[i]);
    if (now.path != then.path || now.size != then.size) {
      return false;
    }
    if (now.modified != then.modified || then.modified > *began - kClockSlack) {
      doubtful.push_back(i);
    }
  }
  for (const size_t i : doubtful) {
    if (text_hash_of(files[i]) != (*stamps)[i].content) {
      return false;
    }
  }
  return true;
}

std::string nanoseconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::to_string(std::chrono::nanoseconds(now).count());
}

void make_cache_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(ExitCode::io, fmt::format("{}: cannot create the folder: {}",
                                          printable(folder, PATH_MAX), error.message()));
  }
}

std::unique_ptr<SafetensorsFile> open_cache(const std::string& path, const char* what) {
  if (!exists(path)) {
    return nullptr;
  }
  try {
    return std::make_unique<SafetensorsFile>(SafetensorsFile::open(path));
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_input) {
      throw;
    }
    log_warn("{}: the cache is damaged and will be rebuilt ({})", what, error.message());
    return nullptr;
  }
}

std::string cache_metadata(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

const TensorEntry* cache_array(const SafetensorsFile& file, const char* name, DType type) {
  const TensorEntry* entry = file.find(name);
  if (entry == nullptr || entry->dtype != type || entry->shape.size() != 1) {
    return nullptr;
  }
  const auto address = reinterpret_cast<uintptr_t>(file.bytes(*entry));
  return address % static_cast<uintptr_t>(dtype_size(type)) == 0 ? entry : nullptr;
}

DType token_type_for(const Tokenizer& tokenizer) {
  const int64_t largest = tokenizer.largest_token();
  if (largest <= UINT8_MAX) {
    return DType::u8;
  }
  return largest <= INT16_MAX ? DType::i16 : DType::i32;
}

void widen_tokens(const uint8_t* data, DType type, int64_t first, int64_t count, int64_t* out) {
  if (type == DType::u8) {
    widen<uint8_t>(data, first, count, out);
  } else if (type == DType::i16) {
    widen<int16_t>(data, first, count, out);
  } else {
    widen<int32_t>(data, first, count, out);
  }
}

}  // namespace rondo
