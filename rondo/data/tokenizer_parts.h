// Shared by the tokenizers and their users in this folder: splitting text into UTF-8 characters and
// stray bytes, and reading files in stretches. Internal to rondo/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "rondo/data/text_source.h"
#include "rondo/data/tokenizer.h"

namespace rondo {

// The UTF-8 character at the start of a text.
struct Utf8Head {
  enum class Kind {
    whole,    // `length` bytes are a character (RFC 3629)
    partial,  // all `length` bytes, up to the end of the text, start a character
    stray,    // the first byte (`length` is 1) is not part of a character
  };
  Kind kind = Kind::stray;
  size_t length = 0;
  uint32_t code = 0;  // of a whole character
};
Utf8Head utf8_head(std::string_view text);  // `text` must not be empty

// U+2581, SentencePiece's space marker.
constexpr uint32_t kPieceSpaceCode = 0x2581;
constexpr std::string_view kPieceSpace = "\xE2\x96\x81";

// U+2585, which its trainer reserves for characters it leaves out.
constexpr uint32_t kPieceUnknownCode = 0x2585;

// Reads a whole text in blocks of complete stretches (encode_cut) of at most a few MB each:
// encoding them one by one equals encoding the text.
void read_stretches(TextReader& reader, const std::function<void(std::string_view)>& use);

// 16 hex digits.
std::string hex_fingerprint(uint64_t value);

std::shared_ptr<const Tokenizer> load_sentencepiece(const std::string& path);

}  // namespace rondo
