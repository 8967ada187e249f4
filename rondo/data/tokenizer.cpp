// The byte tokenizer, splitting text into stretches, and streaming decoding.
#include "rondo/data/tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "rondo/base/require.h"
#include "rondo/data/tokenizer_parts.h"

namespace rondo {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  int64_t vocabulary() const override { return kByteVocabulary; }
  int64_t largest_token() const override { return 255; }
  SpecialTokens special_tokens() const override {
    return {kBytePadding, kByteBegin, kByteEnd, kByteUnknown};
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens(text.size());
    std::transform(text.begin(), text.end(), tokens.begin(),
                   [](char c) { return static_cast<uint8_t>(c); });
    return tokens;
  }

  std::string decode(const std::vector<int32_t>& tokens) const override {
    std::string text;
    text.reserve(tokens.size());
    for (const int32_t token : tokens) {
      if (token >= 0 && token <= 255) {
        text.push_back(static_cast<char>(token));
      }
    }
    return text;
  }

  std::string name() const override { return "bytes"; }
  std::string fingerprint() const override { return hex_fingerprint(0x6279746573000001); }
};

constexpr size_t kReadBytes = size_t{1} << 20;

bool is_continuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// The length of a character that starts with `first`, and the valid range of its second byte (which
// excludes overlong forms, surrogates and codes beyond U+10FFFF).
struct LeadByte {
  size_t length;
  uint8_t low;
  uint8_t high;
};

LeadByte lead_byte(uint8_t first) {
  if (first < 0x80) {
    return {1, 0, 0};
  }
  if (first < 0xC2 || first > 0xF4) {
    return {0, 0, 0};
  }
  if (first < 0xE0) {
    return {2, 0x80, 0xBF};
  }
  if (first < 0xF0) {
    const uint8_t low = first == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = first == 0xED ? 0x9F : 0xBF;
    return {3, low, high};
  }
  const uint8_t low = first == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = first == 0xF4 ? 0x8F : 0xBF;
  return {4, low, high};
}

}  // namespace

Utf8Head utf8_head(std::string_view text) {
  require(!text.empty(), "utf8_head: expected text, got none");
  const auto first = static_cast<uint8_t>(text[0]);
  const LeadByte lead = lead_byte(first);
  if (lead.length == 0) {
    return {Utf8Head::Kind::stray, 1, 0};
  }
  if (lead.length == 1) {
    return {Utf8Head::Kind::whole, 1, first};
  }
  uint32_t code = first & (0x7Fu >> lead.length);
  const size_t present = std::min(lead.length, text.size());
  for (size_t i = 1; i < present; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool fits = i == 1 ? byte >= lead.low && byte <= lead.high : is_continuation(text[i]);
    if (!fits) {
      return {Utf8Head::Kind::stray, 1, 0};
    }
    code = code << 6 | (byte & 0x3Fu);
  }
  if (present < lead.length) {
    return {Utf8Head::Kind::partial, present, 0};
  }
  return {Utf8Head::Kind::whole, lead.length, code};
}

std::string hex_fingerprint(uint64_t value) { return fmt::format("{:016x}", value); }

size_t encode_cut(std::string_view text, bool last) {
  const std::string_view front = text.substr(0, kMaxEncodeStretch);
  const size_t line_end = front.find('\n');
  if (line_end != std::string_view::npos) {
    return line_end + 1;
  }
  if (text.size() <= kMaxEncodeStretch) {
    // A stretch of exactly the limit still waits: the next byte may continue its last character.
    return last ? text.size() : 0;
  }
  for (size_t back = 0; back < 4; ++back) {
    if (!is_continuation(text[kMaxEncodeStretch - back])) {
      return kMaxEncodeStretch - back;
    }
  }
  return kMaxEncodeStretch;  // not UTF-8, so any position will do
}

void read_stretches(TextReader& reader, const std::function<void(std::string_view)>& use) {
  std::string buffer;
  size_t filled = 0;
  bool last = false;
  while (!last) {
    buffer.resize(filled + kReadBytes);
    const size_t got = reader.read(buffer.data() + filled, kReadBytes);
    filled += got;
    last = got == 0;
    const std::string_view text(buffer.data(), filled);
    size_t whole = 0;
    while (whole < text.size()) {
      const size_t length = encode_cut(text.substr(whole), last);
      if (length == 0) {
        break;
      }
      whole += length;
    }
    if (whole > 0) {
      use(text.substr(0, whole));
      buffer.erase(0, whole);
      filled -= whole;
    }
  }
}

std::shared_ptr<const Tokenizer> make_tokenizer(const std::string& spec) {
  if (spec == "bytes") {
    return std::make_shared<ByteTokenizer>();
  }
  return load_sentencepiece(spec);
}

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {
  require(tokenizer_ != nullptr, "decoder: expected a tokenizer, got none");
}

std::string StreamDecoder::push(int32_t token) {
  held_ += tokenizer_->decode({token});
  size_t ready = 0;
  while (ready < held_.size()) {
    const Utf8Head head = utf8_head(std::string_view(held_).substr(ready));
    if (head.kind == Utf8Head::Kind::partial) {
      break;
    }
    ready += head.length;
  }
  std::string out = held_.substr(0, ready);
  held_.erase(0, ready);
  return out;
}

std::string StreamDecoder::finish() { return std::exchange(held_, {}); }

}  // namespace rondo
