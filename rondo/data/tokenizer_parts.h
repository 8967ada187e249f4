// What the tokenizers and their users in this folder share: taking UTF-8 apart, byte by byte where
// it is none, and reading files in stretches. Internal to rondo/data.
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

// The UTF-8 character at the front of a text.
struct Utf8Head {
  enum class Kind {
    whole,    // `length` bytes are a character (RFC 3629)
    partial,  // all `length` bytes, up to the end of the text, are the beginning of one
    stray,    // the first byte (`length` is 1) is part of none
  };
  Kind kind = Kind::stray;
  size_t length = 0;
  uint32_t code = 0;  // of a whole one
};
Utf8Head utf8_head(std::string_view text);  // not of an empty one

// U+2581, by which SentencePiece writes a space.
constexpr uint32_t kPieceSpaceCode = 0x2581;
constexpr std::string_view kPieceSpace = "\xE2\x96\x81";

// U+2585, which its trainer keeps for characters it leaves out.
constexpr uint32_t kPieceUnknownCode = 0x2585;

// Reads all of a text in blocks of whole stretches (encode_cut), each of some MB at most: encoding
// them one by one is encoding the text.
void read_stretches(TextReader& reader, const std::function<void(std::string_view)>& use);

// 16 hex digits.
std::string hex_fingerprint(uint64_t value);

std::shared_ptr<const Tokenizer> load_sentencepiece(const std::string& path);

}  // namespace rondo
