// Drawing heat maps and contours.
#include "rondo/report/maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "rondo/report/page.h"

namespace rondo {
namespace {

using svg::Anchor;
using svg::Point;
using svg::Range;

Range range_of(const Grid& values, std::optional<double> low, std::optional<double> high,
               bool diverging) {
  Range range;
  for (const auto& row : values) {
    for (const double v : row) range.add(v);
  }
  if (!(range.low <= range.high)) range.low = 0, range.high = 1;
  if (diverging && !low.has_value()) {
    const double most = std::max(std::abs(range.low), std::abs(range.high));
    range.low = -most;
    range.high = most;
  }
  range.low = low.value_or(range.low);
  range.high = high.value_or(range.high);
  return range;
}

double share_of(double value, const Range& range) {
  return range.high > range.low ? (value - range.low) / (range.high - range.low) : 0.5;
}

double widest(const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, svg::text_width(label));
  return width;
}

// The layout of a heat map.
struct HeatLayout {
  double left, top, cell_width, cell_height;
  bool turned;  // column labels read upward
  double bottom_room;
  int digits;
};

HeatLayout heat_layout(const HeatMap& map, const Range& range) {
  const auto columns = static_cast<double>(std::max<size_t>(1, map.columns.size()));
  HeatLayout l{};
  l.left = std::min(220.0, widest(map.rows) + 16) + (map.y_label.empty() ? 0 : 20);
  l.top = 8;
  l.cell_width = std::clamp((svg::kWidth - 90 - l.left) / columns, 4.0, 44.0);
  l.cell_height = std::min(30.0, std::max(12.0, l.cell_width));
  l.turned = widest(map.columns) > l.cell_width - 2;
  l.bottom_room = l.turned ? std::min(160.0, widest(map.columns)) + 14 : 20;
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  l.digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return l;
}

std::string draw_cell(const HeatMap& map, const HeatLayout& l, const Range& range, size_t r,
                      size_t c, double y) {
  const double value = map.values[r][c];
  if (!std::isfinite(value)) return "";
  const double share = share_of(value, range);
  const double x = l.left + static_cast<double>(c) * l.cell_width;
  const std::string number = fmt::format("{:.{}f}", value, l.digits);
  const bool written = svg::text_width(number) + 4 <= l.cell_width && l.cell_height >= 14;
  const std::string rect = fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"", x, y,
      l.cell_width - 0.5, l.cell_height - 0.5, svg::map_color(share, map.diverging));
  if (written) {
    return rect + "/>\n" +
           svg::text({x + l.cell_width / 2, y + l.cell_height / 2 + 4}, Anchor::middle, number,
                     svg::is_light(share, map.diverging) ? "dark" : "light");
  }
  if (map.values.size() * map.columns.size() > 600) return rect + "/>\n";
  return rect + fmt::format("><title>{}, {}: {}</title></rect>\n", escape_html(map.rows[r]),
                            escape_html(map.columns[c]), fmt::format("{:.4g}", value));
}

std::string draw_column_labels(const HeatMap& map, const HeatLayout& l, double bottom) {
  std::string markup;
  double free_from = -1e9;
  for (size_t c = 0; c < map.columns.size(); ++c) {
    const double x = l.left + (static_cast<double>(c) + 0.5) * l.cell_width;
    const double half = l.turned ? 7 : svg::text_width(map.columns[c]) / 2;
    if (x - half < free_from) continue;  // would overlap the previous label
    free_from = x + half - 1;
    markup += l.turned ? svg::upward_text({x + 4, bottom + 6}, Anchor::end,
                                          svg::shortened(map.columns[c], 160), "faint")
                       : svg::text({x, bottom + 16}, Anchor::middle, map.columns[c], "faint");
  }
  return markup;
}

// The point between two corners of a cell where the value crosses `level`.
Point crossing(Point a, double va, Point b, double vb, double level) {
  const double t = (level - va) / (vb - va);
  return {a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)};
}

// Five round levels within the range, denser near the bottom, where the minima are.
std::vector<double> contour_levels(const Range& range) {
  std::vector<double> levels;
  for (const double t : axis_ticks(range.low, range.high, 9)) {
    if (t > range.low && t < range.high) levels.push_back(t);
  }
  return levels;
}

}  // namespace

std::string heat_map(const HeatMap& map) {
  const Range range = range_of(map.values, map.low, map.high, map.diverging);
  const HeatLayout l = heat_layout(map, range);
  const double height = l.cell_height * static_cast<double>(map.values.size());
  const double bottom = l.top + 20 + height;
  const double right = l.left + l.cell_width * static_cast<double>(map.columns.size());
  const double bar = std::max(90.0, std::min(height, 220.0));
  const double low_end = std::max(bottom + l.bottom_room + 24, l.top + 30 + bar);
  std::string markup = svg::open(low_end, map.title);
  for (size_t r = 0; r < map.values.size(); ++r) {
    const size_t place = map.upward ? map.values.size() - 1 - r : r;
    const double y = l.top + 20 + static_cast<double>(place) * l.cell_height;
    for (size_t c = 0; c < map.values[r].size(); ++c) {
      markup += draw_cell(map, l, range, r, c, y);
    }
    markup += svg::text({l.left - 6, y + l.cell_height / 2 + 4}, Anchor::end,
                        svg::shortened(map.rows[r], 200), "faint");
  }
  markup += draw_column_labels(map, l, bottom);
  markup += svg::text({(l.left + right) / 2, bottom + l.bottom_room + 16}, Anchor::middle,
                      map.x_label, "faint");
  if (!map.y_label.empty()) {
    markup += svg::upward_text({14, l.top + 20 + height / 2}, Anchor::middle, map.y_label, "faint");
  }
  svg::ColorBar legend = {{right + 16, l.top + 20}, bar, range.low, range.high, map.diverging, ""};
  markup += svg::color_bar(legend);
  markup += svg::text({right + 16, l.top + 8}, Anchor::start, map.legend, "faint");
  return markup + "</svg>\n";
}

std::vector<Piece> contour_pieces(const Grid& values, double level) {
  std::vector<Piece> pieces;
  for (size_t r = 0; r + 1 < values.size(); ++r) {
    for (size_t c = 0; c + 1 < values[r].size(); ++c) {
      const auto x = static_cast<double>(c);
      const auto y = static_cast<double>(r);
      const std::array<Point, 4> at = {{{x, y}, {x + 1, y}, {x + 1, y + 1}, {x, y + 1}}};
      const std::array<double, 4> v = {values[r][c], values[r][c + 1], values[r + 1][c + 1],
                                       values[r + 1][c]};
      if (!std::all_of(v.begin(), v.end(), [](double d) { return std::isfinite(d); })) continue;
      std::vector<Point> cuts;
      for (size_t e = 0; e < 4; ++e) {
        const size_t next = (e + 1) % 4;
        if ((v[e] < level) != (v[next] < level)) {
          cuts.push_back(crossing(at[e], v[e], at[next], v[next], level));
        }
      }
      // Two crossings, or four at a saddle, where the center value decides which are connected.
      if (cuts.size() == 2) pieces.push_back({cuts[0], cuts[1]});
      if (cuts.size() != 4) continue;
      const bool joined = ((v[0] + v[1] + v[2] + v[3]) / 4 < level) == (v[0] < level);
      pieces.push_back({cuts[0], cuts[joined ? 1 : 3]});
      pieces.push_back({cuts[2], cuts[joined ? 3 : 1]});
    }
  }
  return pieces;
}

namespace {

// The value of a contour line at the middle of one of its pieces, as near to `wanted` as other
// labels permit; empty if there is no room.
std::string contour_label(std::vector<Point> middles, Point wanted, const std::string& value,
                          std::vector<Point>& taken) {
  const auto distance = [&](Point p) { return std::hypot(p.x - wanted.x, p.y - wanted.y); };
  std::sort(middles.begin(), middles.end(),
            [&](Point a, Point b) { return distance(a) < distance(b); });
  for (const Point& p : middles) {
    const bool free = std::all_of(taken.begin(), taken.end(), [&](Point other) {
      return std::abs(other.x - p.x) > svg::text_width(value) + 8 || std::abs(other.y - p.y) > 16;
    });
    if (!free) continue;
    taken.push_back(p);
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" style=\"fill:#fff;stroke:#000;"
        "stroke-width:3;stroke-opacity:0.6;paint-order:stroke\">{}</text>\n",
        p.x, p.y + 4, value);
  }
  return "";
}

}  // namespace

std::string contour_map(const SurfaceMap& map) {
  const Range range = range_of(map.values, map.low, map.high, false);
  const auto columns = static_cast<double>(map.x.size());
  const auto rows = static_cast<double>(map.y.size());
  constexpr double kSide = 400, kLeft = 70, kTop = 14;
  const double w = kSide / columns, h = kSide / rows;
  const auto x_at = [&](double column) { return kLeft + (column + 0.5) * w; };
  const auto y_at = [&](double row) { return kTop + kSide - (row + 0.5) * h; };
  std::string markup = svg::open(kTop + kSide + 48, map.title, kLeft + kSide + 110);
  for (size_t r = 0; r < map.y.size(); ++r) {
    for (size_t c = 0; c < map.x.size(); ++c) {
      if (!std::isfinite(map.values[r][c])) continue;
      markup += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
          x_at(static_cast<double>(c) - 0.5), y_at(static_cast<double>(r) + 0.5), w + 0.3, h + 0.3,
          svg::map_color(share_of(map.values[r][c], range)));
    }
  }
  std::string labels;
  std::vector<Point> taken;
  const Point top_center = {kLeft + kSide / 2, kTop + kSide / 4};
  for (const double level : contour_levels(range)) {
    std::string path;
    std::vector<Point> middles;
    const std::vector<Piece> pieces = contour_pieces(map.values, level);
    for (const Piece& p : pieces) {
      path += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", x_at(p.from.x), y_at(p.from.y),
                          x_at(p.to.x), y_at(p.to.y));
      middles.push_back({x_at((p.from.x + p.to.x) / 2), y_at((p.from.y + p.to.y) / 2)});
    }
    if (path.empty()) continue;
    labels += contour_label(middles, top_center, tick_text(level), taken);
    markup += fmt::format("<path d=\"{}\" class=\"contour\"><title>{}</title></path>\n", path,
                          tick_text(level));
  }
  markup += labels;  // over all lines
  const svg::Scale x({map.x.front(), map.x.back()}, false, x_at(0), x_at(columns - 1));
  const svg::Scale y({map.y.front(), map.y.back()}, false, y_at(0), y_at(rows - 1));
  for (const double t : x.ticks(4)) {
    markup += svg::text({x(t), kTop + kSide + 18}, Anchor::middle, tick_text(t), "faint");
  }
  for (const double t : y.ticks(4)) {
    markup += svg::text({kLeft - 6, y(t) + 4}, Anchor::end, tick_text(t), "faint");
  }
  markup += svg::text({kLeft + kSide / 2, kTop + kSide + 40}, Anchor::middle, map.x_label, "faint");
  markup += svg::upward_text({14, kTop + kSide / 2}, Anchor::middle, map.y_label, "faint");
  markup += svg::color_bar(
      {{kLeft + kSide + 16, kTop + 20}, 220, range.low, range.high, false, map.legend});
  return markup + "</svg>\n";
}

std::string surface_plot(const SurfaceMap& map) {
  const Range range = range_of(map.values, map.low, map.high, false);
  const auto last_column = static_cast<double>(map.x.size() - 1);
  const auto last_row = static_cast<double>(map.y.size() - 1);
  constexpr double kMiddle = 270, kTop = 130, kAcross = 230, kDepth = 95, kHeight = 170;
  // x and y from -1 to 1, rotated by 45 degrees, seen from above.
  const auto project = [&](size_t r, size_t c) {
    const double x = 2 * static_cast<double>(c) / last_column - 1;
    const double y = 2 * static_cast<double>(r) / last_row - 1;
    const double z = std::clamp(share_of(map.values[r][c], range), 0.0, 1.0);
    return Point{kMiddle + (x - y) / 2 * kAcross,
                 kTop + 95 + (x + y) / 2 * kDepth - (z - 0.5) * kHeight};
  };
  std::string markup = svg::open(kTop + 2 * kDepth + 100, map.title, 2 * kMiddle + 110);
  for (size_t r = 0; r + 1 < map.y.size(); ++r) {  // back to front
    for (size_t c = 0; c + 1 < map.x.size(); ++c) {
      const std::array<std::array<size_t, 2>, 4> corners = {
          {{r, c}, {r, c + 1}, {r + 1, c + 1}, {r + 1, c}}};
      std::string points;
      double sum = 0;
      for (const auto& [row, column] : corners) {
        const Point p = project(row, column);
        points += fmt::format("{:.1f},{:.1f} ", p.x, p.y);
        sum += map.values[row][column];
      }
      if (!std::isfinite(sum)) continue;
      markup += fmt::format("<polygon points=\"{}\" fill=\"{}\" class=\"facet\"/>\n", points,
                            svg::map_color(share_of(sum / 4, range)));
    }
  }
  const double floor = kTop + 95 + kHeight / 2;
  markup += svg::text({kMiddle + kAcross / 2 + 6, floor + kDepth / 2 + 24}, Anchor::start,
                      map.x_label, "faint");
  markup += svg::text({kMiddle - kAcross / 2 - 6, floor + kDepth / 2 + 24}, Anchor::end,
                      map.y_label, "faint");
  markup += svg::color_bar(
      {{2 * kMiddle + 20, kTop - 20}, 220, range.low, range.high, false, map.legend});
  return markup + "</svg>\n";
}

}  // namespace rondo
