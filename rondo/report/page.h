// Self-contained web pages: one file, no network access, light and dark, printable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// `text` with &, <, > and quotes escaped.
std::string escape_html(std::string_view text);

class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  // A table; the first line is the header. Cells are plain text. All but the first column align
  // right.
  void table(const std::vector<std::vector<std::string>>& lines);
  // A figure: SVG or other markup, inserted as is.
  void figure(std::string_view markup, std::string_view caption = {});
  void raw(std::string_view markup) { body_ += markup; }

  std::string html() const;
  // The markup of the first figure; empty if there is none.
  const std::string& first_figure() const { return first_figure_; }

 private:
  std::string first_figure_;
  std::string title_;
  std::string body_;
};

// The SVG of a figure as a separate file, with the colors of a page. Empty if it has none.
std::string standalone_svg(std::string_view figure);

}  // namespace rondo
