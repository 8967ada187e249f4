// Validating a parallel cache: structure, values, checksums, and whether its files are unchanged.
#include "rondo/data/parallel_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {
namespace {

// More lines than any file has; sums of a few such numbers cannot overflow.
constexpr int64_t kMostLines = int64_t{1} << 60;

template <class Token>
bool tokens_at_most(const uint8_t* data, int64_t count, int64_t largest) {
  const auto* tokens = reinterpret_cast<const Token*>(data);
  return std::all_of(tokens, tokens + count,
                     [=](Token token) { return token >= 0 && token <= largest; });
}

bool tokens_are_sound(const ParallelSide& side, int64_t largest) {
  if (side.type == DType::u8) {
    return largest >= UINT8_MAX || tokens_at_most<uint8_t>(side.tokens, side.token_count, largest);
  }
  return side.type == DType::i16 ? tokens_at_most<int16_t>(side.tokens, side.token_count, largest)
                                 : tokens_at_most<int32_t>(side.tokens, side.token_count, largest);
}

// Whether the sentences partition all tokens, with at least one and at most `most` each. Values are
// subtracted only after they are known to be in range.
bool sentences_are_sound(const ParallelSide& side, int64_t count, int64_t most) {
  if (side.starts[0] != 0 || side.starts[count] != side.token_count) {
    return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = side.starts[i];
    const int64_t end = side.starts[i + 1];
    if (end <= begin || end > side.token_count || end - begin > most) {
      return false;
    }
  }
  return true;
}

bool lines_are_sound(const ParallelArrays& arrays) {
  const ParallelCounts& counts = arrays.counts;
  for (const int64_t number : {counts.lines, counts.empty, counts.long_skipped, counts.long_cut}) {
    if (number < 0 || number > kMostLines) {
      return false;
    }
  }
  if (counts.pairs != arrays.count || counts.long_cut > counts.pairs || counts.pairs > kMostLines ||
      counts.lines != counts.pairs + counts.empty + counts.long_skipped) {
    return false;
  }
  int64_t before = 0;
  for (int64_t i = 0; i < arrays.count; ++i) {
    if (arrays.lines[i] <= before) {
      return false;
    }
    before = arrays.lines[i];
  }
  return before <= counts.lines;
}

// Tokens and starts of one side; false if they are missing or malformed.
bool map_side(const SafetensorsFile& file, const std::string& name, DType type, int64_t count,
              ParallelSide& side) {
  const TensorEntry* tokens = cache_array(file, name.c_str(), type);
  const TensorEntry* starts = cache_array(file, (name + "_starts").c_str(), DType::i64);
  if (tokens == nullptr || starts == nullptr || starts->elements() != count + 1) {
    return false;
  }
  side.type = type;
  side.tokens = file.bytes(*tokens);
  side.token_count = tokens->elements();
  side.starts = reinterpret_cast<const int64_t*>(file.bytes(*starts));
  return true;
}

void hash_side(const ParallelSide& side, int64_t count, TextHash& hash) {
  hash.add(side.starts, static_cast<size_t>(count + 1) * sizeof(int64_t));
  hash.add(side.tokens, static_cast<size_t>(side.token_count * dtype_size(side.type)));
}

}  // namespace

ParallelLimits parallel_limits(const ParallelOptions& options, const Tokenizer& source,
                               const Tokenizer& target) {
  return {token_type_for(source), token_type_for(target), source.largest_token(),
          target.largest_token(), options.max_tokens};
}

std::optional<ParallelArrays> map_parallel(const SafetensorsFile& file,
                                           const ParallelLimits& limits) {
  const TensorEntry* lines = cache_array(file, "lines", DType::i64);
  const TensorEntry* counts = cache_array(file, "counts", DType::i64);
  const TensorEntry* files = cache_array(file, "files", DType::u8);
  constexpr int64_t kCounts = 5;
  if (!lines || !counts || !files || lines->elements() < 1 || counts->elements() != kCounts) {
    return std::nullopt;
  }
  ParallelArrays arrays;
  arrays.count = lines->elements();
  arrays.lines = reinterpret_cast<const int64_t*>(file.bytes(*lines));
  const auto* numbers = reinterpret_cast<const int64_t*>(file.bytes(*counts));
  arrays.counts = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
  arrays.files = {reinterpret_cast<const char*>(file.bytes(*files)),
                  static_cast<size_t>(files->elements())};
  const bool sound = map_side(file, "source", limits.source_type, arrays.count, arrays.source) &&
                     map_side(file, "target", limits.target_type, arrays.count, arrays.target) &&
                     lines_are_sound(arrays) &&
                     sentences_are_sound(arrays.source, arrays.count, limits.max_tokens) &&
                     sentences_are_sound(arrays.target, arrays.count, limits.max_tokens) &&
                     tokens_are_sound(arrays.source, limits.source_largest) &&
                     tokens_are_sound(arrays.target, limits.target_largest);
  return sound ? std::make_optional(arrays) : std::nullopt;
}

std::string parallel_owner(const ParallelOptions& options, const Tokenizer& source,
                           const Tokenizer& target) {
  const ParallelFiles& files = options.files;
  const std::string part =
      files.whole() ? "" : fmt::format(", lines {}:{}", files.first_line, files.last_line);
  return fmt::format("{} {}, {} tokens, {}{}", source.fingerprint(), target.fingerprint(),
                     options.max_tokens, options.cut ? "cut" : "skipped", part);
}

std::string pairs_checksum(const ParallelArrays& arrays, const Tokenizer& source,
                           const Tokenizer& target) {
  TextHash hash;
  hash.add(source.fingerprint());
  hash.add(target.fingerprint());
  hash.add(&arrays.count, sizeof(arrays.count));
  hash_side(arrays.source, arrays.count, hash);
  hash_side(arrays.target, arrays.count, hash);
  return hex_fingerprint(hash.value());
}

std::string parallel_checksum(const ParallelArrays& arrays, const std::string& pairs_sum,
                              const std::string& owner, const std::string& built) {
  const ParallelCounts& counts = arrays.counts;
  TextHash hash;
  hash.add(fmt::format("{}\n{}\n{}\n{} {} {} {} {}\n", pairs_sum, owner, built, counts.lines,
                       counts.pairs, counts.empty, counts.long_skipped, counts.long_cut));
  hash.add(arrays.lines, static_cast<size_t>(arrays.count) * sizeof(int64_t));
  hash.add(arrays.files);
  return hex_fingerprint(hash.value());
}

std::optional<ParallelCorpus> ParallelCache::load(const std::string& path,
                                                  const ParallelOptions& options,
                                                  const Tokenizer& source,
                                                  const Tokenizer& target) {
  std::unique_ptr<SafetensorsFile> file = open_cache(path, "parallel text");
  const std::string owner = parallel_owner(options, source, target);
  if (!file || cache_metadata(*file, kCacheFormatKey) != kParallelFormat ||
      cache_metadata(*file, kParallelOwnerKey) != owner) {
    return std::nullopt;
  }
  const std::optional<ParallelArrays> arrays =
      map_parallel(*file, parallel_limits(options, source, target));
  const std::string pairs_sum = cache_metadata(*file, kCacheTextKey);
  const bool sound =
      arrays && pairs_checksum(*arrays, source, target) == pairs_sum &&
      parallel_checksum(*arrays, pairs_sum, owner, cache_metadata(*file, kCacheBuiltKey)) ==
          cache_metadata(*file, kCacheWholeKey);
  if (!sound) {
    log_warn("parallel text: {} is damaged and will be rebuilt", printable(path, PATH_MAX));
    return std::nullopt;
  }
  ParallelCorpus corpus;
  corpus.source_ = arrays->source;
  corpus.target_ = arrays->target;
  corpus.lines_ = arrays->lines;
  corpus.counts_ = arrays->counts;
  corpus.fingerprint_ = pairs_sum;
  corpus.file_ = std::move(file);
  return corpus;
}

bool ParallelCache::is_fresh(const ParallelCorpus& corpus, const std::vector<std::string>& files) {
  const SafetensorsFile& file = *corpus.file_;
  const TensorEntry* entry = file.find("files");
  return sources_unchanged(
      {reinterpret_cast<const char*>(file.bytes(*entry)), static_cast<size_t>(entry->elements())},
      cache_metadata(file, kCacheBuiltKey), files);
}

}  // namespace rondo
