// Characters, white space and lower case as in Python.
#include "rondo/metrics/bleu_text.h"

#include "rondo/metrics/bleu_case_tables.h"

namespace rondo {
namespace {

constexpr uint32_t kEscapedByte = 0xDC00;
constexpr uint32_t kCapitalSigma = 0x3A3;
constexpr uint32_t kSigma = 0x3C3;
constexpr uint32_t kFinalSigma = 0x3C2;
constexpr uint32_t kCapitalDottedI = 0x130;
constexpr uint32_t kCombiningDot = 0x307;

struct Character {
  uint32_t code;
  size_t bytes;
};

// The character at text[at]: a well-formed one, or a single invalid byte.
Character character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return uint32_t{static_cast<unsigned char>(text[i])}; };
  const uint32_t lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  const Character escaped = {kEscapedByte + lead, 1};
  if (lead < 0xC2 || lead > 0xF4 || at + bytes > text.size()) return escaped;
  uint32_t code = lead & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return escaped;
    code = code << 6 | (byte(at + i) & 0x3FU);
  }
  const uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < least || code > 0x10FFFF || surrogate) return escaped;
  return {code, bytes};
}

void append_character(std::string& text, uint32_t code) {
  const auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code >= kEscapedByte + 0x80 && code <= kEscapedByte + 0xFF) {
    put(code - kEscapedByte);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// The entry of a sorted table of {first, last, ...} whose range contains `code`, or null.
template <size_t kWidth, size_t kSize>
const int32_t* entry_of(const int32_t (&table)[kSize], uint32_t code) {
  static_assert(kSize % kWidth == 0);
  const auto wanted = static_cast<int32_t>(code);
  size_t low = 0;
  size_t high = kSize / kWidth;  // the entry, if any, is in [low, high)
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    (table[middle * kWidth] <= wanted ? low : high) = middle;
  }
  const int32_t* entry = table + low * kWidth;
  return entry[0] <= wanted && wanted <= entry[1] ? entry : nullptr;
}

uint32_t lower_character(uint32_t code) {
  const int32_t* run = entry_of<4>(kLowerRuns, code);
  if (run == nullptr || (static_cast<int32_t>(code) - run[0]) % run[2] != 0) return code;
  return static_cast<uint32_t>(static_cast<int32_t>(code) + run[3]);
}

bool ignorable(uint32_t code) { return entry_of<2>(kCaseIgnorable, code) != nullptr; }
bool cased(uint32_t code) { return entry_of<2>(kCased, code) != nullptr; }

// Whether the sigma at text[at] ends a word: a cased character before it and none after it,
// skipping ignorable characters (Unicode's Final_Sigma).
bool ends_word(const std::vector<uint32_t>& text, size_t at) {
  size_t before = at;
  while (before > 0 && ignorable(text[before - 1])) --before;
  if (before == 0 || !cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && ignorable(text[after])) ++after;
  return after == text.size() || !cased(text[after]);
}

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

}  // namespace

std::vector<uint32_t> characters_of(std::string_view text) {
  std::vector<uint32_t> characters;
  characters.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    characters.push_back(character.code);
    at += character.bytes;
  }
  return characters;
}

std::vector<uint32_t> dense_characters_of(std::string_view text) {
  std::vector<uint32_t> characters;
  characters.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (const size_t space = space_at(text, at)) {
      at += space;
      continue;
    }
    const Character character = character_at(text, at);
    characters.push_back(character.code);
    at += character.bytes;
  }
  return characters;
}

size_t space_at(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80)
    return byte == ' ' || (byte >= 0x09 && byte <= 0x0D) || (byte >= 0x1C && byte <= 0x1F);
  if (byte != 0xC2 && (byte < 0xE1 || byte > 0xE3)) return 0;  // not a lead byte of white space
  const Character character = character_at(text, at);
  switch (character.code) {
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return character.bytes;
    default:
      return character.code >= 0x2000 && character.code <= 0x200A ? character.bytes : 0;
  }
}

std::string_view strip_right(std::string_view line) {
  while (!line.empty()) {
    size_t space = 0;
    for (size_t bytes = 1; bytes <= 3 && bytes <= line.size() && space == 0; ++bytes) {
      if (space_at(line, line.size() - bytes) == bytes) space = bytes;
    }
    if (space == 0) break;
    line.remove_suffix(space);
  }
  return line;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t at = 0; at < line.size();) {
    const size_t space = space_at(line, at);
    if (space > 0) {
      if (at > begin) words.push_back(line.substr(begin, at - begin));
      begin = at + space;
    }
    at += space > 0 ? space : 1;
  }
  if (begin < line.size()) words.push_back(line.substr(begin));
  return words;
}

std::string lower_case(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  if (is_ascii(text)) {
    for (const char c : text)
      lower.push_back(static_cast<char>(lower_character(static_cast<unsigned char>(c))));
    return lower;
  }
  const std::vector<uint32_t> characters = characters_of(text);
  for (size_t i = 0; i < characters.size(); ++i) {
    const uint32_t code = characters[i];
    if (code == kCapitalSigma) {
      append_character(lower, ends_word(characters, i) ? kFinalSigma : kSigma);
    } else if (code == kCapitalDottedI) {
      append_character(lower, 'i');
      append_character(lower, kCombiningDot);
    } else {
      append_character(lower, lower_character(code));
    }
  }
  return lower;
}

}  // namespace rondo
