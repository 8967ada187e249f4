// Small string tools: guessing what a mistyped name meant, numbers for people, globs, UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// The number of single-byte insertions, deletions, replacements and swaps of two neighbors that
// turn `a` into `b`. A swap counts once, since "widht" is one slip of the fingers and not two.
// Time O(|a| |b|), memory O(|b|).
int64_t edit_distance(std::string_view a, std::string_view b);

// The candidate that whoever wrote `name` most plausibly meant, or nullopt when none is near.
// Letter case is disregarded. Plausible are, best first: few edits for the length; a beginning of
// the candidate ("ringformer/mt" for "ringformer/mt-base"); the part after the last '/' or '.'
// equal or nearly so ("tl-global" for "sret/tl-global"); a piece from within it. Ties go to the
// shorter candidate, then to the earlier one. Names above kMaxSuggestLength are not guessed at.
std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates);

// "did you mean 'x'?" for x = nearest(name, candidates), or "" when there is none.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// 1234567 -> "1,234,567".
std::string with_commas(int64_t value);

// "1 file", "1,234 files"; `many` where the plural has no plain s: counted(2, "match", "matches").
std::string counted(int64_t count, std::string_view one, std::string_view many = {});

// Three significant digits and a decimal prefix: 1.38e9 -> "1.38 G", 4755979 -> "4.76 M",
// 950 -> "950", 0.25 -> "0.25". From 1e18 on, and for what is not finite, as plain as printf's %g.
std::string si_count(double value);

// Three significant digits and a binary prefix: 512 -> "512 B", 1536 -> "1.5 KiB".
std::string human_bytes(int64_t bytes);

// The parts between separators; always one more than there are separators, so "" gives {""} and
// "a,,b" gives {"a", "", "b"}.
std::vector<std::string> split(std::string_view text, char separator);

// The lines of a text, without empty ones and carriage returns.
std::vector<std::string> text_lines(std::string_view text);

// Whether all of `name` matches `pattern`, where `*` stands for any run of characters (dots and
// slashes too) and `?` for exactly one. No escapes. Never worse than |pattern| * |name| steps.
bool glob_match(std::string_view pattern, std::string_view name);

// Whether there is nothing but spaces, tabs and ends of lines.
bool is_blank(std::string_view text);

// Whether `text` is well-formed UTF-8 by RFC 3629 (no overlong forms, no surrogates).
bool valid_utf8(std::string_view text);

// `text` made safe and short for a message: control characters and malformed UTF-8 become '?',
// and anything past about `max_bytes` becomes "...", never cutting a character in two.
std::string printable(std::string_view text, int64_t max_bytes = 160);

// `items` with `separator` between them.
std::string join(const std::vector<std::string>& items, std::string_view separator);

}  // namespace rondo
