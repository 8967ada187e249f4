// String utilities.
#include "rondo/base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "rondo/base/limits.h"

namespace rondo {
namespace {

// ASCII only: names in Rondo are ASCII, and folding must not depend on the locale.
std::string fold_case(std::string_view text) {
  std::string folded(text);
  for (char& c : folded) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return folded;
}

// How many edits still count as a typo in a name of this length. Always keeps at least one letter;
// otherwise every one-letter name would resemble every other.
int64_t plausible_edits(size_t length) {
  if (length <= 1) {
    return 0;
  }
  if (length <= 4) {
    return 1;
  }
  return std::max<int64_t>(2, static_cast<int64_t>(length) / 4);
}

std::string_view last_component(std::string_view name) {
  const size_t at = name.find_last_of("/.");
  return at == std::string_view::npos ? name : name.substr(at + 1);
}

// How close `candidate` is to `name`: the kind of match (0 is best), then the distance within that
// kind. nullopt: no match. Both are already case-folded.
std::optional<std::pair<int, int64_t>> likeness(std::string_view name, std::string_view candidate) {
  const int64_t edits = edit_distance(name, candidate);
  if (edits <= plausible_edits(name.size())) {
    return std::make_pair(0, edits);
  }
  if (name.size() >= 2 && candidate.substr(0, name.size()) == name) {
    return std::make_pair(1, int64_t{0});
  }
  const std::string_view last = last_component(name);
  const int64_t last_edits = edit_distance(last, last_component(candidate));
  // If `name` has a wrong family prefix, only an identical last part counts.
  const int64_t allowed = last.size() == name.size() ? plausible_edits(last.size()) : 0;
  if (!last.empty() && last_edits <= allowed) {
    return std::make_pair(2, last_edits);
  }
  constexpr size_t kPiece = 3;  // shorter substrings match by chance
  const bool inside = name.size() >= kPiece && candidate.find(name) != std::string_view::npos;
  const bool around = candidate.size() >= kPiece && name.find(candidate) != std::string_view::npos;
  if (inside || around) {
    const auto a = static_cast<int64_t>(name.size());
    const auto b = static_cast<int64_t>(candidate.size());
    return std::make_pair(3, std::abs(a - b));
  }
  return std::nullopt;
}

// The length in bytes of the well-formed UTF-8 character at text[at], or 0 if there is none.
size_t utf8_character(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;  // 0: not a continuation
  };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(at);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {  // C0 and C1 would be overlong
    return continues(at + 1) ? 2 : 0;
  }
  const unsigned second = byte(at + 1);
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && second < 0xA0;
    const bool surrogate = lead == 0xED && second > 0x9F;
    return continues(at + 1) && continues(at + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && second < 0x90;
    const bool too_big = lead == 0xF4 && second > 0x8F;
    return continues(at + 1) && continues(at + 2) && continues(at + 3) && !overlong && !too_big ? 4
                                                                                                : 0;
  }
  return 0;
}

// Three significant digits of 0 <= value < 1024, never in exponent notation.
std::string three_digits(double value) {
  return value >= 999.5 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

}  // namespace

int64_t edit_distance(std::string_view a, std::string_view b) {
  const size_t columns = b.size() + 1;
  // Rows i-2, i-1 and i of the dynamic-programming table; i-2 is for swaps.
  std::vector<int64_t> before(columns), previous(columns), current(columns);
  for (size_t j = 0; j < columns; ++j) {
    current[j] = static_cast<int64_t>(j);
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(previous);
    previous.swap(current);
    current[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j < columns; ++j) {
      const int64_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
  }
  return current[b.size()];
}

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates) {
  if (name.empty() || name.size() > kMaxSuggestLength) {
    return std::nullopt;
  }
  const std::string folded = fold_case(name);
  const std::string* best = nullptr;
  std::tuple<int, int64_t, size_t> best_rank;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxSuggestLength) {
      continue;
    }
    const auto alike = likeness(folded, fold_case(candidate));
    if (!alike) {
      continue;
    }
    const std::tuple<int, int64_t, size_t> rank(alike->first, alike->second, candidate.size());
    if (best == nullptr || rank < best_rank) {
      best = &candidate;
      best_rank = rank;
    }
  }
  return best == nullptr ? std::nullopt : std::make_optional(*best);
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::optional<std::string> guess = nearest(name, candidates);
  return guess ? fmt::format("did you mean '{}'?", *guess) : std::string();
}

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  const int64_t first = value < 0 ? 1 : 0;
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<size_t>(at), 1, ',');
  }
  return digits;
}

std::string counted(int64_t count, std::string_view one, std::string_view many) {
  const bool single = count == 1;
  const std::string_view noun = single || many.empty() ? one : many;
  return fmt::format("{} {}{}", with_commas(count), noun, single || !many.empty() ? "" : "s");
}

std::string si_count(double value) {
  constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P"};
  constexpr size_t kLast = std::size(kPrefixes) - 1;
  double scaled = std::abs(value);
  size_t prefix = 0;
  while (scaled >= 999.5 && prefix < kLast) {  // 999.5 would round to 1000 in the smaller unit
    scaled /= 1000;
    ++prefix;
  }
  if (!std::isfinite(value) || scaled >= 999.5) {
    return fmt::format("{:.3g}", value);
  }
  return (value < 0 ? "-" : "") + three_digits(scaled) + kPrefixes[prefix];
}

std::string human_bytes(int64_t bytes) {
  constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  double scaled = std::abs(static_cast<double>(bytes));
  size_t unit = 0;
  while (scaled >= 1023.5 && unit + 1 < std::size(kUnits)) {
    scaled /= 1024;
    ++unit;
  }
  return (bytes < 0 ? "-" : "") + three_digits(scaled) + kUnits[unit];
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t at = text.find(separator, begin);
    if (at == std::string_view::npos) {
      parts.emplace_back(text.substr(begin));
      return parts;
    }
    parts.emplace_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
}

std::vector<std::string> text_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (std::string& line : split(text, '\n')) {
    if (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    if (!line.empty()) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

bool glob_match(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  // On a mismatch, only the last star needs to take one more character: the leftmost match of an
  // earlier star's segment leaves the most room for the rest.
  size_t star = std::string_view::npos;
  size_t star_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n\v\f\r") == std::string_view::npos;
}

bool valid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = utf8_character(text, at);
    if (length == 0) {
      return false;
    }
    at += length;
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_character(text, at);
    out += length > 0 ? text.substr(at, length) : std::string_view("\xEF\xBF\xBD");
    at += std::max<size_t>(length, 1);
  }
  return out;
}

std::string printable(std::string_view text, int64_t max_bytes) {
  std::string shown;
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = std::max<size_t>(utf8_character(text, at), 1);
    if (shown.size() + length > static_cast<size_t>(max_bytes)) {
      return shown + "...";
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    // C1 controls (C2 80..9F) affect terminals just like C0.
    const bool c1 = length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    const bool plain = byte >= 0x20 && byte < 0x7F;
    if (plain || (length > 1 && !c1)) {
      shown.append(text.substr(at, length));
    } else {
      shown.push_back('?');
    }
    at += length;
  }
  return shown;
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    text.append(i == 0 ? std::string_view() : separator).append(items[i]);
  }
  return text;
}

}  // namespace rondo
