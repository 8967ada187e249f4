// Drawing bars, lines and points.
#include "rondo/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/report/label_places.h"
#include "rondo/report/page.h"

namespace rondo {
namespace {

using svg::Anchor;
using svg::Point;
using svg::Range;
using svg::Scale;

// The plotting area.
struct Frame {
  double left, right, top, bottom;
};

// Grid lines, tick labels and names of both axes.
std::string draw_axes(const Frame& f, const Axis& x_axis, const Scale& x, const Axis& y_axis,
                      const Scale& y) {
  std::string markup;
  for (const double t : y.ticks(6)) {
    const double at = y(t);
    if (at < f.top - 0.5 || at > f.bottom + 0.5) continue;
    markup += svg::line({f.left, at}, {f.right, at}, "class=\"axis\"");
    markup += svg::text({f.left - 8, at + 4}, Anchor::end, tick_text(t), "faint");
  }
  double free_from = -1e9;  // keeps tick labels from overlapping
  for (const double t : x.ticks(6)) {
    const double at = x(t);
    const double half = svg::text_width(tick_text(t)) / 2;
    if (at < f.left - 0.5 || at > f.right + 0.5 || at - half < free_from) continue;
    free_from = at + half + 6;
    markup += svg::line({at, f.bottom}, {at, f.bottom + 4}, "class=\"axis\"");
    markup += svg::text({at, f.bottom + 18}, Anchor::middle, tick_text(t), "faint");
  }
  markup +=
      svg::text({(f.left + f.right) / 2, f.bottom + 40}, Anchor::middle, x_axis.label, "faint");
  if (!y_axis.label.empty()) {
    markup += svg::upward_text({14, (f.top + f.bottom) / 2}, Anchor::middle, y_axis.label, "faint");
  }
  return markup;
}

std::string draw_interval(Point from, Point to) {
  const char* style = "class=\"interval\"";
  const bool flat = std::abs(from.y - to.y) < std::abs(from.x - to.x);
  const double dx = flat ? 0 : 4;
  const double dy = flat ? 4 : 0;
  return svg::line(from, to, style) +
         svg::line({from.x - dx, from.y - dy}, {from.x + dx, from.y + dy}, style) +
         svg::line({to.x - dx, to.y - dy}, {to.x + dx, to.y + dy}, style);
}

// The band around a series as a polygon, forward along one edge and back along the other.
std::string draw_band(const Series& series, size_t i, const Scale& x, const Scale& y) {
  if (series.band.size() != series.points.size()) return "";
  std::string there;
  std::string back;
  for (size_t k = 0; k < series.points.size(); ++k) {
    const double px = series.points[k].first;
    const auto& [low, high] = series.band[k];
    if (!x.shows(px) || !y.shows(low) || !y.shows(high)) continue;
    there += fmt::format("{:.1f},{:.1f} ", x(px), y(high));
    back.insert(0, fmt::format("{:.1f},{:.1f} ", x(px), y(low)));
    if (series.band.size() == 1) return draw_interval({x(px), y(low)}, {x(px), y(high)});
  }
  return fmt::format("<polygon points=\"{}{}\" fill=\"{}\" fill-opacity=\"0.18\"/>\n", there, back,
                     svg::series_color(i));
}

std::string draw_series(const LineChart& chart, size_t i, const Scale& x, const Scale& y) {
  const Series& series = chart.series[i];
  std::string points;
  std::string marks;
  for (const auto& [px, py] : series.points) {
    if (!x.shows(px) || !y.shows(py)) continue;
    points += fmt::format("{:.1f},{:.1f} ", x(px), y(py));
    if (chart.marks || series.points.size() == 1) {  // a line of one point would be invisible
      marks += svg::mark({x(px), y(py)}, i, fmt::format("{}: {:.4g}", series.name, py));
    }
  }
  return draw_band(series, i, x, y) +
         fmt::format(
             "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n",
             points, svg::series_color(i), svg::series_dashes(i)) +
         marks;
}

}  // namespace

std::string bar_chart(const BarChart& chart) {
  constexpr double kRow = 26;
  constexpr double kLeft = 220;
  constexpr double kTop = 8;
  Range range;
  for (const Bar& bar : chart.bars) {
    if (bar.value.has_value()) range.add(*bar.value);
    if (bar.interval.has_value()) range.add(bar.interval->first), range.add(bar.interval->second);
  }
  const bool zero = chart.from_zero || range.low < 0;
  if (zero) range.add(0);
  const double lowest = range.low;
  range.widen(0.15);
  if (zero && lowest >= 0) range.low = 0;
  const double bottom = kTop + kRow * static_cast<double>(chart.bars.size());
  const Scale x(range, false, kLeft, svg::kWidth - 70);
  const double base = zero ? x(0) : kLeft;
  std::string markup = svg::open(bottom + 48, chart.title.empty() ? chart.unit : chart.title);
  for (const double t : axis_ticks(range.low, range.high, 6)) {
    markup += svg::line({x(t), kTop}, {x(t), bottom}, "class=\"axis\"");
    markup += svg::text({x(t), bottom + 18}, Anchor::middle, tick_text(t), "faint");
  }
  for (size_t i = 0; i < chart.bars.size(); ++i) {
    const Bar& bar = chart.bars[i];
    const double y = kTop + kRow * (static_cast<double>(i) + 0.5);
    markup += svg::text({kLeft - 8, y + 4}, Anchor::end, svg::shortened(bar.label, kLeft - 16));
    if (!bar.value.has_value()) continue;
    const double end = x(*bar.value);
    markup += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" fill=\"var(--bar)\"/>\n",
        std::min(base, end), y - 7, std::abs(end - base));
    double right = std::max(base, end);
    if (bar.interval.has_value()) {
      markup += draw_interval({x(bar.interval->first), y}, {x(bar.interval->second), y});
      right = std::max(right, x(bar.interval->second));
    }
    markup += svg::text({right + 6, y + 4}, Anchor::start, fmt::format("{:.4g}", *bar.value));
  }
  return markup +
         svg::text({(kLeft + svg::kWidth - 70) / 2, bottom + 40}, Anchor::middle, chart.unit,
                   "faint") +
         "</svg>\n";
}

std::string line_chart(const LineChart& chart) {
  constexpr double kRight = 190;  // room for the legend
  const double names = svg::kLegendRow * static_cast<double>(chart.series.size());
  const Frame f = {74, svg::kWidth - kRight, 10, std::max(300.0, 10 + names)};
  Range across;
  Range up;
  for (const Series& series : chart.series) {
    for (const auto& [px, py] : series.points) {
      if (!std::isfinite(px) || !std::isfinite(py)) continue;
      if ((chart.x.log && px <= 0) || (chart.y.log && py <= 0)) continue;
      across.add(px);
      up.add(py);
    }
    for (const auto& [low, high] : series.band) {
      if (!chart.y.log || low > 0) up.add(low);
      if (!chart.y.log || high > 0) up.add(high);
    }
  }
  const Scale x = Scale::of(chart.x, across, 0, f.left, f.right);
  const Scale y = Scale::of(chart.y, up, 0.05, f.bottom, f.top);
  const std::string title =
      chart.title.empty() ? chart.y.label + " by " + chart.x.label : chart.title;
  std::string markup = svg::open(f.bottom + 48, title);
  markup += draw_axes(f, chart.x, x, chart.y, y);
  std::vector<std::string> legend;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    markup += draw_series(chart, i, x, y);
    legend.push_back(chart.series[i].name);
  }
  return markup + svg::legend(f.right + 12, f.top + 10, kRight - 12, legend) + "</svg>\n";
}

std::string scatter_chart(const ScatterChart& chart) {
  const Frame f = {74, svg::kWidth - 20, 10, 340};
  Range across;
  Range up;
  for (const ScatterPoint& p : chart.points) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y)) continue;
    if ((chart.x.log && p.x <= 0) || (chart.y.log && p.y <= 0)) continue;
    across.add(p.x);
    up.add(p.y);
    if (p.interval.has_value()) up.add(p.interval->first), up.add(p.interval->second);
  }
  const Scale x = Scale::of(chart.x, across, 0.1, f.left, f.right);
  const Scale y = Scale::of(chart.y, up, 0.12, f.bottom, f.top);
  const std::string title =
      chart.title.empty() ? chart.y.label + " against " + chart.x.label : chart.title;
  std::string markup = svg::open(f.bottom + 48, title) + draw_axes(f, chart.x, x, chart.y, y);
  std::vector<LabeledPoint> labels;
  for (const ScatterPoint& p : chart.points) {
    if (!x.shows(p.x) || !y.shows(p.y)) continue;
    const Point at = {x(p.x), y(p.y)};
    if (p.interval.has_value()) {
      markup += draw_interval({at.x, y(p.interval->first)}, {at.x, y(p.interval->second)});
    }
    markup += svg::mark(at, p.group, fmt::format("{}: {:.4g}, {:.4g}", p.label, p.x, p.y));
    labels.push_back({at, p.label});
  }
  for (const PlacedLabel& l : place_labels(labels, {f.left, f.top, f.right, f.bottom})) {
    if (l.far) markup += svg::line(l.point, {l.at.x, l.at.y - 4}, "class=\"axis\"");
    markup += svg::text(l.at, l.anchor, l.text);
  }
  return markup + "</svg>\n";
}

}  // namespace rondo
