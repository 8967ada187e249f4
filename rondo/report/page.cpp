// HTML with its style inside.
#include "rondo/report/page.h"

#include <fmt/format.h>

namespace rondo {
namespace {

// Colors are variables, so that the SVG figures follow the light or dark scheme as well.
constexpr const char* kStyle = R"(
:root { --text: #1b1f24; --faint: #6a737d; --line: #d0d7de; --back: #ffffff; --bar: #3b6ea5;
        --s0: #2f6db3; --s1: #c4501b; --s2: #2c8a57; --s3: #8a4fb0; --s4: #a8801a; --s5: #b03a5b;
        --s6: #3a8f9c; --s7: #6b6f76; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ec; --faint: #98a2ad; --line: #3b434c; --back: #14181d; --bar: #6fa3d8;
          --s0: #74aae6; --s1: #ee8a5a; --s2: #6cc795; --s3: #c39be3; --s4: #dcb95a; --s5: #e87f9d;
          --s6: #77c6d2; --s7: #a3a8af; } }
@media print { :root { --text: #000; --faint: #444; --line: #999; --back: #fff; --bar: #444; }
  figure, table { break-inside: avoid; } }
* { box-sizing: border-box; }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: var(--text);
       background: var(--back); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
th { font-weight: 600; border-bottom-width: 2px; }
.words td { text-align: left; vertical-align: top; }
.words th { text-align: left; }
figure { margin: 1.5rem 0; } figcaption { color: var(--faint); font-size: .9rem; }
svg { max-width: 100%; height: auto; } svg text { fill: var(--text); font: 13px system-ui, sans-serif; }
svg .faint { fill: var(--faint); } svg .axis { stroke: var(--line); }
)";

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void Page::heading(std::string_view text) {
  body_ += fmt::format("<h2>{}</h2>\n", escape_html(text));
}

void Page::paragraph(std::string_view text) {
  body_ += fmt::format("<p>{}</p>\n", escape_html(text));
}

void Page::table(const std::vector<std::vector<std::string>>& lines) {
  body_ += "<table>\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* tag = i == 0 ? "th" : "td";
    body_ += "<tr>";
    for (const std::string& cell : lines[i]) {
      body_ += fmt::format("<{0}>{1}</{0}>", tag, escape_html(cell));
    }
    body_ += "</tr>\n";
  }
  body_ += "</table>\n";
}

void Page::figure(std::string_view markup, std::string_view caption) {
  body_ += fmt::format("<figure>{}", markup);
  if (!caption.empty()) body_ += fmt::format("<figcaption>{}</figcaption>", escape_html(caption));
  body_ += "</figure>\n";
}

std::string Page::html() const {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}</body>\n</"
      "html>\n",
      escape_html(title_), kStyle, body_);
}

}  // namespace rondo
