// HTML with embedded style.
#include "rondo/report/page.h"

#include <fmt/format.h>

namespace rondo {
namespace {

// Colors are variables, so that SVG figures follow the light or dark scheme too.
constexpr const char* kStyle = R"(
:root { --text: #1b1f24; --faint: #59626c; --line: #d0d7de; --back: #ffffff; --bar: #3b6ea5;
        --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #cc79a7; --s4: #a07800; --s5: #3d9bd1;
        --s6: #5d3a9b; --s7: #4d4d4d; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ec; --faint: #a3adb8; --line: #3b434c; --back: #14181d; --bar: #6fa3d8;
          --s0: #56b4e9; --s1: #f0894a; --s2: #3cc9a0; --s3: #e39cc2; --s4: #e6c24a; --s5: #8fd0f5;
          --s6: #b79be8; --s7: #b5bac0; } }
@media print { :root { --text: #000; --faint: #444; --line: #999; --back: #fff; --bar: #444;
    --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #cc79a7; --s4: #a07800; --s5: #3d9bd1;
    --s6: #5d3a9b; --s7: #4d4d4d; }
  svg, mark, td, rect { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  figure, table { break-inside: avoid; } }
* { box-sizing: border-box; }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: var(--text);
       background: var(--back); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
th { font-weight: 600; border-bottom-width: 2px; }
.words td { text-align: left; vertical-align: top; overflow-wrap: anywhere; }
.words th { text-align: left; }
.words .short { white-space: nowrap; overflow-wrap: normal; }
figure { margin: 1.5rem 0; } figcaption { color: var(--faint); font-size: .9rem; }
img { max-width: 100%; height: auto; image-rendering: pixelated; }
.shaded { font: 15px/1.9 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
mark { color: inherit; border-radius: 2px; }
)";
// The style of figures, also used for standalone files (standalone_svg).
constexpr const char* kFigureStyle = R"(
svg { max-width: 100%; height: auto; } svg text { fill: var(--text); font: 13px system-ui, sans-serif; }
svg .faint { fill: var(--faint); } svg .axis { stroke: var(--line); }
svg .light { fill: #fff; } svg .dark { fill: #111; }
svg .interval { stroke: var(--text); stroke-width: 1.5; }
svg .contour { fill: none; stroke: #fff; stroke-width: 1.2; stroke-opacity: .85; }
svg .facet { stroke: #222; stroke-width: .3; stroke-opacity: .6; }
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
  if (first_figure_.empty()) first_figure_ = markup;
  body_ += fmt::format("<figure>{}", markup);
  if (!caption.empty()) body_ += fmt::format("<figcaption>{}</figcaption>", escape_html(caption));
  body_ += "</figure>\n";
}

std::string Page::html() const {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}{3}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}</body>\n</"
      "html>\n",
      escape_html(title_), kStyle, body_, kFigureStyle);
}

std::string standalone_svg(std::string_view figure) {
  const size_t opened = figure.find("<svg ");
  const size_t inside = figure.find('>', opened);
  const size_t end = figure.find("</svg>");
  if (opened == std::string_view::npos || inside > end) return "";
  const std::string variables(kStyle, std::string_view(kStyle).find("@media print"));
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" {}\n<style>{}{}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"var(--back)\"/>{}</svg>\n",
      figure.substr(opened + 5, inside + 1 - opened - 5), variables, kFigureStyle,
      figure.substr(inside + 1, end - inside - 1));
}

}  // namespace rondo
