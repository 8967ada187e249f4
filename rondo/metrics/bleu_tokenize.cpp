// 13a: the tokenizer of mteval-v13a.pl, as in sacreBLEU. There it is a sequence of regular
// expressions on characters; here each is a loop over bytes. The two are equivalent: everything
// matched is ASCII, no byte of a multi-byte character is, and where an expression matches "any
// non-digit" next to a punctuation mark, only the adjacent byte matters.
#include "rondo/metrics/bleu.h"
#include "rondo/metrics/bleu_text.h"

namespace rondo {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }

// ASCII punctuation that is always a token: all but the apostrophe, comma, hyphen and period.
bool stands_alone(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  size_t at = text.find(what);
  if (at == std::string::npos) return;
  std::string replaced;
  size_t begin = 0;
  for (; at != std::string::npos; at = text.find(what, begin)) {
    replaced.append(text, begin, at - begin).append(by);
    begin = at + what.size();
  }
  text = replaced.append(text, begin);
}

// Markup of NIST files, replaced in sequence: "&amp;lt;" becomes "<", but "&amp;quot;" does not
// become a quote.
void unescape(std::string& line) {
  replace_all(line, "<skipped>", "");
  replace_all(line, "-\n", "");
  replace_all(line, "\n", " ");
  if (line.find('&') == std::string::npos) return;
  replace_all(line, "&quot;", "\"");
  replace_all(line, "&amp;", "&");
  replace_all(line, "&lt;", "<");
  replace_all(line, "&gt;", ">");
}

// Appends c with a space on either side.
void put_apart(std::string& out, char c) {
  out.push_back(' ');
  out.push_back(c);
  out.push_back(' ');
}

// A space needs no separation; repeated spaces do not matter.
std::string separate_marks(std::string_view line) {
  std::string out;
  out.reserve(line.size() + line.size() / 4 + 16);
  for (const char c : line) {
    if (c != ' ' && stands_alone(c)) {
      put_apart(out, c);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// A period or comma is a token unless preceded by a digit. Like the next two functions, scans left
// to right without overlapping matches: in "...", the first two form one match.
std::string separate_after_letter(std::string_view line) {
  std::string out;
  out.reserve(line.size() + line.size() / 4);
  for (size_t i = 0; i < line.size(); ++i) {
    out.push_back(line[i]);
    if (i + 1 < line.size() && is_stop(line[i + 1]) && !is_digit(line[i]))
      put_apart(out, line[++i]);
  }
  return out;
}

// A period or comma is a token unless followed by a digit.
std::string separate_before_letter(std::string_view line) {
  std::string out;
  out.reserve(line.size() + line.size() / 4);
  for (size_t i = 0; i < line.size(); ++i) {
    if (is_stop(line[i]) && i + 1 < line.size() && !is_digit(line[i + 1])) {
      put_apart(out, line[i]);
      out.push_back(line[++i]);
    } else {
      out.push_back(line[i]);
    }
  }
  return out;
}

// A hyphen is a token after a digit.
std::string separate_dash(std::string_view line) {
  std::string out;
  out.reserve(line.size() + line.size() / 4);
  for (size_t i = 0; i < line.size(); ++i) {
    out.push_back(line[i]);
    if (is_digit(line[i]) && i + 1 < line.size() && line[i + 1] == '-') put_apart(out, line[++i]);
  }
  return out;
}

std::string spaced_out_13a(std::string_view line) {
  std::string text(line);
  unescape(text);
  text.insert(text.begin(), ' ');
  text.push_back(' ');
  return separate_dash(separate_before_letter(separate_after_letter(separate_marks(text))));
}

}  // namespace

std::string tokenize_13a(std::string_view line) {
  const std::string text = spaced_out_13a(line);
  std::string tokens;
  for (const std::string_view word : words_of(text)) {
    if (!tokens.empty()) tokens.push_back(' ');
    tokens.append(word);
  }
  return tokens;
}

}  // namespace rondo
