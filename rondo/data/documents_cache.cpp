// Checking a documents cache: structure, checksums, and whether its sources are as they were.
#include "rondo/data/documents_cache.h"

#include <fmt/core.h>
#include <sys/stat.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <new>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/data/text_source.h"
#include "rondo/data/text_stream.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {
namespace {

// A file changed this near to the moment of reading may have been changed once more within the
// clock's resolution (2 s on FAT), so its time alone proves nothing.
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

// The front of `text` up to `separator`, which is taken too; nullopt if there is none.
std::optional<std::string_view> take_until(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view front = text.substr(0, end);
  text.remove_prefix(end + 1);
  return front;
}

std::string metadata_value(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

// A one-dimensional entry of the given type, aligned for it; null if it is not so.
const TensorEntry* array_entry(const SafetensorsFile& file, const char* name, DType type) {
  const TensorEntry* entry = file.find(name);
  if (entry == nullptr || entry->dtype != type || entry->shape.size() != 1) {
    return nullptr;
  }
  const auto address = reinterpret_cast<uintptr_t>(file.bytes(*entry));
  return address % static_cast<uintptr_t>(dtype_size(type)) == 0 ? entry : nullptr;
}

std::optional<CacheArrays> map_arrays(const SafetensorsFile& file, DType token_type) {
  const TensorEntry* tokens = array_entry(file, "tokens", token_type);
  const TensorEntry* starts = array_entry(file, "starts", DType::i64);
  const TensorEntry* bytes = array_entry(file, "bytes", DType::i64);
  const TensorEntry* words = array_entry(file, "words", DType::i64);
  const TensorEntry* names = array_entry(file, "names", DType::u8);
  const TensorEntry* files = array_entry(file, "files", DType::u8);
  if (!tokens || !starts || !bytes || !words || !names || !files) {
    return std::nullopt;
  }
  CacheArrays arrays;
  arrays.count = bytes->elements();
  if (starts->elements() != arrays.count + 1 || words->elements() != arrays.count) {
    return std::nullopt;
  }
  arrays.token_type = token_type;
  arrays.tokens = file.bytes(*tokens);
  arrays.token_count = tokens->elements();
  arrays.starts = reinterpret_cast<const int64_t*>(file.bytes(*starts));
  arrays.bytes = reinterpret_cast<const int64_t*>(file.bytes(*bytes));
  arrays.words = reinterpret_cast<const int64_t*>(file.bytes(*words));
  arrays.names = {reinterpret_cast<const char*>(file.bytes(*names)),
                  static_cast<size_t>(names->elements())};
  arrays.files = {reinterpret_cast<const char*>(file.bytes(*files)),
                  static_cast<size_t>(files->elements())};
  return arrays;
}

// Whether the documents divide all tokens among them, at least one for each.
bool starts_are_sound(const CacheArrays& arrays) {
  if (arrays.count < 1 || arrays.starts[0] != 0 ||
      arrays.starts[arrays.count] != arrays.token_count) {
    return false;
  }
  for (int64_t i = 0; i < arrays.count; ++i) {
    if (arrays.starts[i + 1] <= arrays.starts[i]) {
      return false;
    }
  }
  return true;
}

// The file if it can be read as safetensors.
std::unique_ptr<SafetensorsFile> open_or_null(const std::string& path) {
  if (!exists(path)) {
    return nullptr;
  }
  try {
    return std::make_unique<SafetensorsFile>(SafetensorsFile::open(path));
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_input) {
      throw;
    }
    log_warn("documents: the cache is damaged and will be built again ({})", error.message());
    return nullptr;
  }
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

}  // namespace

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

DType token_type_for(const Tokenizer& tokenizer) {
  const int64_t largest = tokenizer.largest_token();
  if (largest <= UINT8_MAX) {
    return DType::u8;
  }
  return largest <= INT16_MAX ? DType::i16 : DType::i32;
}

std::string text_checksum(const CacheArrays& arrays, const std::string& fingerprint) {
  const auto extent = static_cast<size_t>(arrays.count) * sizeof(int64_t);
  TextHash hash;
  hash.add(fingerprint.data(), fingerprint.size());
  hash.add(&arrays.count, sizeof(arrays.count));
  hash.add(arrays.starts, extent + sizeof(int64_t));
  hash.add(arrays.bytes, extent);
  hash.add(arrays.words, extent);
  hash.add(arrays.tokens, static_cast<size_t>(arrays.token_count * dtype_size(arrays.token_type)));
  return hex_fingerprint(hash.value());
}

std::string whole_checksum(const CacheArrays& arrays, const std::string& text_sum,
                           const std::string& built) {
  TextHash hash;
  const std::string front = fmt::format("{} {} {}\n", text_sum, built, arrays.names.size());
  hash.add(front.data(), front.size());
  hash.add(arrays.names.data(), arrays.names.size());
  hash.add(arrays.files.data(), arrays.files.size());
  return hex_fingerprint(hash.value());
}

std::optional<Documents> DocumentsCache::load(const std::string& path, const Tokenizer& tokenizer) {
  std::unique_ptr<SafetensorsFile> file = open_or_null(path);
  if (!file || metadata_value(*file, kCacheFormatKey) != kCacheFormat ||
      metadata_value(*file, kCacheTokenizerKey) != tokenizer.fingerprint()) {
    return std::nullopt;
  }
  const std::optional<CacheArrays> arrays = map_arrays(*file, token_type_for(tokenizer));
  const std::string text_sum = metadata_value(*file, kCacheTextKey);
  const bool sound = arrays && starts_are_sound(*arrays) &&
                     text_checksum(*arrays, tokenizer.fingerprint()) == text_sum &&
                     whole_checksum(*arrays, text_sum, metadata_value(*file, kCacheBuiltKey)) ==
                         metadata_value(*file, kCacheWholeKey);
  if (!sound) {
    log_warn("documents: {} is damaged and will be built again", printable(path, PATH_MAX));
    return std::nullopt;
  }
  Documents documents;
  documents.token_data_ = arrays->tokens;
  documents.token_type_ = arrays->token_type;
  documents.total_tokens_ = arrays->token_count;
  documents.starts_.assign(arrays->starts, arrays->starts + arrays->count + 1);
  documents.documents_.resize(static_cast<size_t>(arrays->count));
  std::string_view names = arrays->names;
  for (int64_t i = 0; i < arrays->count; ++i) {
    Documents::Document& document = documents.documents_[static_cast<size_t>(i)];
    document.name = std::string(take_until(names, '\0').value_or(""));
    document.tokens = arrays->starts[i + 1] - arrays->starts[i];
    document.bytes = arrays->bytes[i];
    document.words = arrays->words[i];
    documents.total_bytes_ += document.bytes;
    documents.total_words_ += document.words;
  }
  documents.checksum_ = text_sum;
  documents.file_ = std::move(file);
  return documents;
}

bool DocumentsCache::is_fresh(const Documents& documents, const std::vector<std::string>& files) {
  const SafetensorsFile& file = *documents.file_;
  const TensorEntry* entry = file.find("files");
  const auto stamps = parse_manifest(
      {reinterpret_cast<const char*>(file.bytes(*entry)), static_cast<size_t>(entry->elements())});
  const auto built = parse_number<int64_t>(metadata_value(file, kCacheBuiltKey), 10);
  if (!stamps || !built || stamps->size() != files.size()) {
    return false;
  }
  std::vector<size_t> doubtful;
  for (size_t i = 0; i < files.size(); ++i) {
    const SourceStamp& then = (*stamps)[i];
    const SourceStamp now = stamp_of(files[i]);
    if (now.path != then.path || now.size != then.size) {
      return false;
    }
    if (now.modified != then.modified || then.modified > *built - kClockSlack) {
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

}  // namespace rondo
