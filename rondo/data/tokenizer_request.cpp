// Tokenizers trained on first use.
#include <fmt/format.h>

#include <charconv>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/data/cache_file.h"
#include "rondo/data/text_source.h"
#include "rondo/data/tokenizer.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {

std::optional<TokenizerRequest> parse_tokenizer_request(const std::string& spec) {
  const size_t colon = spec.find(':');
  if (colon == std::string::npos) return std::nullopt;
  TokenizerRequest request;
  request.type = spec.substr(0, colon);
  if (request.type != "bpe" && request.type != "unigram") return std::nullopt;
  const char* end = spec.data() + spec.size();
  const auto [rest, error] = std::from_chars(spec.data() + colon + 1, end, request.vocabulary);
  if (error == std::errc() && rest == end && request.vocabulary >= kMinTrainedVocabulary &&
      request.vocabulary <= kMaxTrainedVocabulary) {
    return request;
  }
  throw Error(ExitCode::bad_input,
              fmt::format("tokenizer '{}': expected {}:N with N from {} to {}", spec, request.type,
                          kMinTrainedVocabulary, kMaxTrainedVocabulary));
}

std::string tokenizer_file(const std::string& spec, const std::vector<std::string>& sources,
                           const std::string& cache_folder) {
  const std::optional<TokenizerRequest> request = parse_tokenizer_request(spec);
  if (!request.has_value()) return spec;
  TextHash hash;
  const auto add = [&](const std::string& text) { hash.add(text.data(), text.size() + 1); };
  add(spec);
  for (const std::string& source : sources) {
    for (const TextPiece& piece : list_text(source)) {
      const std::string& file = piece.path;
      if (!piece.whole()) add(fmt::format("{}:{}", piece.begin, piece.end));
      std::error_code ignored;
      const auto time = std::filesystem::last_write_time(file, ignored).time_since_epoch().count();
      add(std::filesystem::absolute(file, ignored).string());
      add(fmt::format("{} {}", std::filesystem::file_size(file, ignored), time));
    }
  }
  make_cache_folder(cache_folder);
  TokenizerTraining training;
  training.output =
      fmt::format("{}/tokenizer-{}.model", cache_folder, hex_fingerprint(hash.value()));
  if (exists(training.output)) return training.output;
  log_info("training a tokenizer with {} pieces on the training data", request->vocabulary);
  training.sources = sources;
  training.vocabulary = request->vocabulary;
  training.type = request->type;
  train_tokenizer(training);
  return training.output;
}

}  // namespace rondo
