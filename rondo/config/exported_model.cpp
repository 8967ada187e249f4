// Metadata and tokenizers embedded in exported models.
#include "rondo/config/exported_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/safetensors.h"
#include "rondo/config/trained_files.h"

namespace rondo {
namespace {

constexpr int64_t kMaxEmbeddedTokenizerBytes = int64_t{16} << 20;
constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string exported_model_path(const std::string& folder) { return folder + "/model.safetensors"; }

std::string embedded_tokenizer_key(const std::string& side) { return "rondo.tokenizer." + side; }

std::map<std::string, std::string> experiment_metadata(const RunConfig& run, bool embed) {
  RunConfig bare = run;
  std::map<std::string, std::string> metadata;
  for (const auto& [side, field] : tokenizer_fields(bare)) {
    if (!is_tokenizer_file(*field)) continue;
    if (embed) {
      metadata[embedded_tokenizer_key(side)] =
          base64_encode(read_tokenizer_model(*field, kMaxEmbeddedTokenizerBytes));
    }
    *field = "tokenizer." + side + ".model";
  }
  // Data paths are meaningless elsewhere.
  for (std::string* path :
       {&bare.data.train, &bare.data.valid, &bare.data.test, &bare.pairs.train, &bare.pairs.valid,
        &bare.pairs.test, &bare.images.train, &bare.images.valid, &bare.images.test,
        &bare.train.start, &bare.distill.teacher}) {
    path->clear();
  }
  metadata[kExperimentKey] = dump_run_config(bare);
  return metadata;
}

std::string read_tokenizer_model(const std::string& spec, int64_t max_bytes) {
  const size_t mark = spec.rfind(".safetensors#");
  if (mark == std::string::npos || exists(spec)) return read_text_file(spec, max_bytes);
  const size_t side = spec.find('#', mark);
  const SafetensorsFile file = SafetensorsFile::open(spec.substr(0, side));
  const auto found = file.metadata().find(embedded_tokenizer_key(spec.substr(side + 1)));
  if (found == file.metadata().end()) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: contains no tokenizer '{}'", file.path(), spec.substr(side + 1)));
  }
  return base64_decode(found->second, spec);
}

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8U | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text.push_back(k <= count ? kBase64[group >> (18U - 6U * k) & 63U] : '=');
    }
  }
  return text;
}

std::string base64_decode(std::string_view text, const std::string& source) {
  const auto fail = [&] {
    throw Error(ExitCode::bad_input, fmt::format("{}: expected base64, got invalid data", source),
                "the file is damaged");
  };
  if (text.size() % 4 != 0) fail();
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    size_t count = 4;
    while (count > 0 && i + 4 == text.size() && text[i + count - 1] == '=') --count;
    if (count < 2) fail();
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      const size_t value = k < count ? kBase64.find(text[i + k]) : 0;
      if (value == std::string_view::npos) fail();
      group = group << 6U | static_cast<uint32_t>(value);
    }
    for (size_t k = 0; k + 1 < count; ++k) {
      bytes.push_back(static_cast<char>(group >> (16U - 8U * k) & 255U));
    }
  }
  return bytes;
}

}  // namespace rondo
