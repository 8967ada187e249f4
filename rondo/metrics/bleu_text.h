// Python's (and hence sacreBLEU's) text semantics: characters, white space, words, lower case. BLEU
// and chrF scores depend on all of these. Internal to them.
//
// Bytes that are not valid UTF-8 pass through unchanged, each as one character (as in Python's
// "surrogateescape").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// Maximum length of a line; keeps its counts within 32 bits.
constexpr size_t kMaxSegmentBytes = size_t{16} << 20;

// The code points of `text`; an invalid byte b is 0xDC00 + b.
std::vector<uint32_t> characters_of(std::string_view text);

// The same without white space.
std::vector<uint32_t> dense_characters_of(std::string_view text);

// The length in bytes of the white-space character at text[at], or 0 if it is another character.
// White space as defined by str.isspace(), including no-break spaces and U+001C .. U+001F.
size_t space_at(std::string_view text, size_t at);

// `line` without trailing white space: str.rstrip().
std::string_view strip_right(std::string_view line);

// The non-empty words between white space: str.split().
std::vector<std::string_view> words_of(std::string_view line);

// str.lower() with Unicode 14.0, for all scripts, including final sigma.
std::string lower_case(std::string_view text);

}  // namespace rondo
