// Charts of values over a grid, as SVG markup: heat maps with a legend, contour lines, surfaces.
#pragma once

#include <string>
#include <vector>

#include "rondo/report/svg.h"

namespace rondo {

using Grid = std::vector<std::vector<double>>;  // [rows][columns]

struct HeatMap {
  std::string title;    // for screen readers
  std::string x_label;  // of the columns
  std::string y_label;  // of the rows
  std::string legend;   // the meaning of the colors
  std::vector<std::string> rows = {};
  std::vector<std::string> columns = {};
  Grid values = {};                           // cells with non-finite values are blank
  std::optional<double> low = {}, high = {};  // of the legend; none: the range of the values
  bool diverging = false;                     // around 0, which is white
  bool upward = false;                        // the first row at the bottom
};

// Values are printed in cells large enough for them, and are tooltips otherwise.
std::string heat_map(const HeatMap& map);

// Values over a plane.
struct SurfaceMap {
  std::string title;
  std::string x_label, y_label, legend;
  std::vector<double> x = {}, y = {};  // of columns and rows, ascending
  Grid values = {};                    // [y][x]
  std::optional<double> low = {}, high = {};
};

// Colors with contour lines, labeled where there is room.
std::string contour_map(const SurfaceMap& map);
// The same as an oblique view from above.
std::string surface_plot(const SurfaceMap& map);

// Segments of the contour at `level`, in cell units: x = column, y = row.
struct Piece {
  svg::Point from, to;
};
std::vector<Piece> contour_pieces(const Grid& values, double level);

}  // namespace rondo
