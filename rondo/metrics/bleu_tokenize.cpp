// 13a: the tokenizer of mteval-v13a.pl as sacreBLEU has it. There it is a row of regular
// expressions on characters; here each is a loop on bytes. That is the same: all that is looked for
// is ASCII, no byte of another character is, and where an expression takes in "any character but a
// digit" before or after a mark, only the byte next to the mark decides.
#include "rondo/metrics/bleu.h"
#include "rondo/metrics/bleu_text.h"

namespace rondo {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }

// The ASCII marks that are tokens wherever they stand: all but the apostrophe, comma, dash and full
// stop.
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

// Mark-up of the NIST files. One after the other: "&amp;lt;" becomes "<", "&amp;quot;" does not
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

// Space itself is such a mark; how many there are does not matter.
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

// A full stop or comma is a token unless a digit stands before it. Like the next two, this goes
// from left to right and does not look again at what it has taken in: of "..." the first two are
// one find.
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

// A full stop or comma is a token unless a digit follows.
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

// A dash is a token after a digit.
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
