// Charts as SVG markup, for a Page: bars with intervals, lines with bands, points with labels. Heat
// maps and surfaces are in maps.h. Colors come from the page's style.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rondo/report/svg.h"

namespace rondo {

struct Bar {
  std::string label;
  std::optional<double> value;  // nothing: no bar, the label stands alone
  std::optional<std::pair<double, double>> interval;
};

struct BarChart {
  std::string unit;  // below the axis
  std::vector<Bar> bars;
  std::string title;       // for screen readers; "" = the unit
  bool from_zero = false;  // the axis reaches 0
};

// Horizontal bars with intervals. The axis begins near the smallest value, since scores of similar
// models differ little, and its numbers say so; with negative values bars start at 0.
std::string bar_chart(const BarChart& chart);

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points = {};  // by x
  // Around each point, from low to high; empty: no band.
  std::vector<std::pair<double, double>> band = {};
};

struct LineChart {
  Axis x = {};
  Axis y = {};
  std::vector<Series> series = {};
  std::string title = "";  // for screen readers; "" = the labels of the axes
  bool marks = false;      // at every point
};

// Lines with a legend. Points that are not finite are left out.
std::string line_chart(const LineChart& chart);

struct ScatterPoint {
  std::string label;
  double x = 0, y = 0;
  size_t group = 0;                                        // color and mark
  std::optional<std::pair<double, double>> interval = {};  // of y
};

struct ScatterChart {
  Axis x = {};
  Axis y = {};
  std::vector<ScatterPoint> points = {};
  std::string title = "";
};

// Points, each with its label where there is room for it: labels overlap neither points nor each
// other; one that had to go far is tied to its point by a line.
std::string scatter_chart(const ScatterChart& chart);

}  // namespace rondo
