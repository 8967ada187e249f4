// What the charts draw with: ranges and scales, ticks, text, lines, colors. Numbers are written
// with one decimal, so that the same chart is the same text everywhere. Colors and fonts are
// classes and variables of the page's style (page.h), which knows light and dark.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// An axis of a chart.
struct Axis {
  std::string label = "";
  bool log = false;                // by powers of ten; values that are not above 0 are left out
  std::optional<double> low = {};  // the range; nothing: that of the data
  std::optional<double> high = {};
  bool whole = false;  // numbers between whole ones mean nothing
};

// Round numbers that part [low, high] in about `count` pieces.
std::vector<double> axis_ticks(double low, double high, int count);
// Of a log scale: powers of ten, with 2 and 5 times them where there are few.
std::vector<double> log_ticks(double low, double high);
// "0.25", "20k", "1.5M".
std::string tick_text(double value);

namespace svg {

constexpr double kWidth = 760;  // of every chart, in pixels; pages may show it smaller

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value);  // unless it is not finite
  // Makes room around; a range without extent gets some.
  void widen(double share);
};

// Maps a range onto pixels.
class Scale {
 public:
  Scale(Range range, bool log, double begin, double end);
  // Of the data's range with `share` of it as room around, or what the axis says.
  static Scale of(const Axis& axis, Range data, double share, double begin, double end);
  double operator()(double value) const;
  bool shows(double value) const;  // finite and, on a log scale, above 0
  std::vector<double> ticks(int count) const;

 private:
  Range range_;  // of logarithms on a log scale
  bool log_;
  double begin_, end_;
  bool whole_ = false;
};

enum class Anchor { start, middle, end };
struct Point {
  double x = 0, y = 0;
};

// The beginning of a drawing of so many pixels with a title for screen readers; ends with
// "</svg>\n".
std::string open(double height, std::string_view title, double width = kWidth);
// `kind`: class, "" for plain text. Markup in `text` is made harmless.
std::string text(Point at, Anchor anchor, std::string_view text, std::string_view kind = "");
// Turned by 90 degrees, reading upwards.
std::string upward_text(Point at, Anchor anchor, std::string_view text, std::string_view kind = "");
std::string line(Point from, Point to, std::string_view style);
// About as wide as it will be shown.
double text_width(std::string_view text);
// `text` cut to this width, with an ellipsis.
std::string shortened(std::string_view text, double width);

// Series are told apart by color, dashes and marks, so that none of them is needed alone.
std::string series_color(size_t i);
std::string series_dashes(size_t i);  // an attribute, "" for the first
std::string mark(Point at, size_t i, std::string_view title = {});
// Names with their colors, below each other from `top` on at x. Returns the markup.
std::string legend(double x, double top, double width, const std::vector<std::string>& names);
constexpr double kLegendRow = 18;

// A color between dark (0) and light (1) that color-blind people tell apart (viridis), or with
// `diverging` from blue over white to orange. As #rrggbb.
std::string map_color(double share, bool diverging = false);
// The same as red, green, blue.
std::array<uint8_t, 3> map_rgb(double share, bool diverging = false);
// Whether black is more legible than white on it.
bool is_light(double share, bool diverging = false);
// Bar of the color map with ticks for [low, high].
struct ColorBar {
  Point at;
  double height = 0;
  double low = 0, high = 1;
  bool diverging = false;
  std::string label;
};
std::string color_bar(const ColorBar& bar);

}  // namespace svg
}  // namespace rondo
