// String utilities: suggestions for mistyped names, readable numbers, globs, UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// The number of single-byte insertions, deletions, replacements and swaps of adjacent bytes that
// turn `a` into `b`. A swap counts once, since "widht" is one typo, not two. Time O(|a| |b|),
// memory O(|b|).
int64_t edit_distance(std::string_view a, std::string_view b);

// The candidate most plausibly meant by `name`, or nullopt if none is close. Case-insensitive. In
// order of preference: few edits for the length; a prefix of the candidate ("ringformer/mt" for
// "ringformer/mt-base"); the part after the last '/' or '.' equal or nearly so ("tl-global" for
// "sret/tl-global"); a substring of it. Ties go to the shorter candidate, then to the earlier one.
// Names longer than kMaxSuggestLength get no suggestion.
std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates);

// "did you mean 'x'?" for x = nearest(name, candidates), or "" if there is none.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// 1234567 -> "1,234,567".
std::string with_commas(int64_t value);

// "1 file", "1,234 files"; `many` is for irregular plurals: counted(2, "match", "matches").
std::string counted(int64_t count, std::string_view one, std::string_view many = {});

// Three significant digits and a decimal prefix: 1.38e9 -> "1.38 G", 4755979 -> "4.76 M",
// 950 -> "950", 0.25 -> "0.25". From 1e18 on, and for non-finite values, like printf's %g.
std::string si_count(double value);

// Three significant digits and a binary prefix: 512 -> "512 B", 1536 -> "1.5 KiB".
std::string human_bytes(int64_t bytes);

// The parts between separators, empty ones included: "" gives {""} and "a,,b" gives {"a", "", "b"}.
std::vector<std::string> split(std::string_view text, char separator);

// The non-empty lines of a text, without carriage returns.
std::vector<std::string> text_lines(std::string_view text);

// Whether all of `name` matches `pattern`, where `*` matches any run of characters (including dots
// and slashes) and `?` exactly one. No escapes. At most |pattern| * |name| steps.
bool glob_match(std::string_view pattern, std::string_view name);

// Whether `text` is empty or only white space.
bool is_blank(std::string_view text);

// Whether `text` is well-formed UTF-8 per RFC 3629 (no overlong forms, no surrogates).
bool valid_utf8(std::string_view text);
// `text` with U+FFFD in place of every byte that is not part of a well-formed character.
std::string replace_invalid_utf8(std::string_view text);

// `text` sanitized for a message: control characters and malformed UTF-8 become '?', and anything
// past about `max_bytes` becomes "...", without splitting a character.
std::string printable(std::string_view text, int64_t max_bytes = 160);

// `items` with `separator` between them.
std::string join(const std::vector<std::string>& items, std::string_view separator);

}  // namespace rondo
