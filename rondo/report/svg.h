// Drawing primitives for charts: ranges and scales, ticks, text, lines, colors. Numbers are printed
// with one decimal, so that the same chart gives the same text everywhere. Colors and fonts are
// classes and variables of the page style (page.h), which supports light and dark.
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
  bool log = false;                // log scale; values of 0 or less are omitted
  std::optional<double> low = {};  // the range; none: that of the data
  std::optional<double> high = {};
  bool whole = false;  // only integers are meaningful
};

// Round numbers that divide [low, high] into about `count` intervals.
std::vector<double> axis_ticks(double low, double high, int count);
// For a log scale: powers of ten, with 2 and 5 times them if there are few.
std::vector<double> log_ticks(double low, double high);
// "0.25", "20k", "1.5M".
std::string tick_text(double value);

namespace svg {

constexpr double kWidth = 760;  // of every chart, in pixels; pages may scale it down

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value);  // ignores non-finite values
  // Adds a margin; an empty range gets a nonzero extent.
  void widen(double share);
};

// Maps a range onto pixels.
class Scale {
 public:
  Scale(Range range, bool log, double begin, double end);
  // From the range of the data plus a margin of `share` of it, or the axis limits if set.
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

// Opens a drawing of this size in pixels, with a title for screen readers; end it with "</svg>\n".
std::string open(double height, std::string_view title, double width = kWidth);
// `kind`: class, "" for plain text. Markup in `text` is escaped.
std::string text(Point at, Anchor anchor, std::string_view text, std::string_view kind = "");
// Rotated by 90 degrees, reading upward.
std::string upward_text(Point at, Anchor anchor, std::string_view text, std::string_view kind = "");
std::string line(Point from, Point to, std::string_view style);
// The approximate rendered width.
double text_width(std::string_view text);
// `text` truncated to this width, with an ellipsis.
std::string shortened(std::string_view text, double width);

// Series differ in color, dashes and markers, so that no single cue is essential.
std::string series_color(size_t i);
std::string series_dashes(size_t i);  // an attribute, "" for the first
std::string mark(Point at, size_t i, std::string_view title = {});
// Names with their colors, stacked from `top` down at x. Returns the markup.
std::string legend(double x, double top, double width, const std::vector<std::string>& names);
constexpr double kLegendRow = 18;

// A color between dark (0) and light (1), distinguishable by color-blind readers (viridis), or with
// `diverging` from blue through white to orange. As #rrggbb.
std::string map_color(double share, bool diverging = false);
// The same as red, green, blue.
std::array<uint8_t, 3> map_rgb(double share, bool diverging = false);
// Whether black text is more legible than white on it.
bool is_light(double share, bool diverging = false);
// A color bar with ticks for [low, high].
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
