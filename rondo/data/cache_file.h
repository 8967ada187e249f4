// Shared by the caches of tokenized text: source file stamps, an incremental hash, and opening
// untrusted cache files. Internal to rondo/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/base/safetensors.h"
#include "rondo/data/tokenizer.h"

namespace rondo {

// The state of one source file when it was read.
struct SourceStamp {
  std::string path;
  int64_t size = 0;      // of the file itself
  int64_t modified = 0;  // nanoseconds since 1970
  uint64_t content = 0;  // hash of its decompressed text
};

// Current size and modification time of a file; `content` is left 0. Error{io}.
SourceStamp stamp_of(const std::string& path);

// The manifest of sources as stored in a cache: "SIZE MODIFIED CONTENT PATH\0" for each.
std::string manifest_text(const std::vector<SourceStamp>& stamps);
std::optional<std::vector<SourceStamp>> parse_manifest(std::string_view text);

// Whether `files` match the manifest of a cache whose build started at `built`: files with the same
// size and modification time count as unchanged, others are compared by content. Error{io} if one
// does not exist.
bool sources_unchanged(std::string_view manifest, const std::string& built,
                       const std::vector<std::string>& files);

std::string nanoseconds_now();  // since 1970; the format of `built`

// An incremental hash.
class TextHash {
 public:
  TextHash();
  ~TextHash();
  TextHash(const TextHash&) = delete;
  TextHash& operator=(const TextHash&) = delete;
  void add(const void* data, size_t size);
  void add(std::string_view text) { add(text.data(), text.size()); }
  uint64_t value() const;

 private:
  void* state_;
};

// ---- the file

// Creates the folder if it does not exist. Error{io}.
void make_cache_folder(const std::string& folder);

// The cache at `path`, or null if it does not exist or is not a safetensors file. `what`
// ("documents") starts the warning about a damaged one.
std::unique_ptr<SafetensorsFile> open_cache(const std::string& path, const char* what);

std::string cache_metadata(const SafetensorsFile& file, const char* key);  // "" if there is none

// A one-dimensional entry of the given type, aligned for it; null otherwise.
const TensorEntry* cache_array(const SafetensorsFile& file, const char* name, DType type);

// ---- tokens

// u8, i16 or i32: the narrowest type that holds every id the tokenizer can produce.
DType token_type_for(const Tokenizer& tokenizer);

// Tokens [first, first + count) of `data`, which must be aligned for its type.
void widen_tokens(const uint8_t* data, DType type, int64_t first, int64_t count, int64_t* out);

// Removes and returns the front of `text` up to `separator`, which is consumed too; nullopt if
// there is none.
std::optional<std::string_view> take_until(std::string_view& text, char separator);

// Metadata keys common to all caches.
constexpr const char* kCacheFormatKey = "format";
constexpr const char* kCacheTextKey = "text checksum";
constexpr const char* kCacheWholeKey = "checksum";
constexpr const char* kCacheBuiltKey = "built";  // when the build started, nanoseconds since 1970

}  // namespace rondo
