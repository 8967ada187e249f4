// Text as Python sees it, and so as sacreBLEU does: characters, white space, words, lower case.
// Shared by BLEU and chrF, whose numbers depend on every one of these. Internal to them.
//
// Bytes that are no UTF-8 pass through unharmed: each counts as one character of its own (as in
// Python's "surrogateescape").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// One line of text is at most so long; what is counted about it stays within 32 bits.
constexpr size_t kMaxSegmentBytes = size_t{16} << 20;

// The characters of `text`; a byte that begins none is 0xDC00 + itself.
std::vector<uint32_t> characters_of(std::string_view text);

// The same without white space.
std::vector<uint32_t> dense_characters_of(std::string_view text);

// The length in bytes of the white-space character at text[at], or 0 if there is another. White
// space is what str.isspace() takes for it, no-break spaces and U+001C .. U+001F among it.
size_t space_at(std::string_view text, size_t at);

// `line` without the white space at its end: str.rstrip().
std::string_view strip_right(std::string_view line);

// What stands between white space, never empty: str.split().
std::vector<std::string_view> words_of(std::string_view line);

// str.lower() with Unicode 14.0: of any script, final sigma included.
std::string lower_case(std::string_view text);

}  // namespace rondo
