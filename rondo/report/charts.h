// Charts as SVG markup for a Page: bars with intervals, lines with bands, labeled points. Heat maps
// and surfaces are in maps.h. Colors come from the page style.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rondo/report/svg.h"

namespace rondo {

struct Bar {
  std::string label;
  std::optional<double> value;  // none: label without a bar
  std::optional<std::pair<double, double>> interval;
};

struct BarChart {
  std::string unit;  // below the axis
  std::vector<Bar> bars;
  std::string title;       // for screen readers; "" = the unit
  bool from_zero = false;  // the axis includes 0
};

// Horizontal bars with intervals. The axis starts near the smallest value, since scores of similar
// models differ little, and its ticks show this; with negative values bars start at 0.
std::string bar_chart(const BarChart& chart);

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points = {};  // sorted by x
  // Low and high around each point; empty: no band.
  std::vector<std::pair<double, double>> band = {};
};

struct LineChart {
  Axis x = {};
  Axis y = {};
  std::vector<Series> series = {};
  std::string title = "";  // for screen readers; "" = the axis labels
  bool marks = false;      // at every point
};

// Lines with a legend. Non-finite points are omitted.
std::string line_chart(const LineChart& chart);

struct ScatterPoint {
  std::string label;
  double x = 0, y = 0;
  size_t group = 0;                                        // selects color and marker
  std::optional<std::pair<double, double>> interval = {};  // of y
};

struct ScatterChart {
  Axis x = {};
  Axis y = {};
  std::vector<ScatterPoint> points = {};
  std::string title = "";
};

// Points with labels placed where there is room: labels overlap neither points nor each other; a
// distant label is connected to its point by a line.
std::string scatter_chart(const ScatterChart& chart);

}  // namespace rondo
