// Charts as SVG markup, for a Page. Colors come from the page's style.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rondo {

struct Bar {
  std::string label;
  std::optional<double> value;  // nothing: no bar, the label stands alone
  std::optional<std::pair<double, double>> interval;
};

struct BarChart {
  std::string unit;  // below the axis
  std::vector<Bar> bars;
};

// Horizontal bars with intervals. The axis begins near the smallest value, since scores of similar
// models differ little, and its numbers say so.
std::string bar_chart(const BarChart& chart);

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by x
};

struct LineChart {
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
};

// Lines with a legend. Points that are not finite are left out.
std::string line_chart(const LineChart& chart);

// Round numbers that part [low, high] in about `count` pieces.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace rondo
