// Drawing charts.
#include "rondo/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rondo/report/page.h"

namespace rondo {
namespace {

constexpr double kWidth = 760;
constexpr size_t kColors = 8;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Makes room around; a range without extent gets some.
  void widen(double share) {
    if (!(low <= high)) low = 0, high = 1;
    const double extent = high > low ? high - low : std::max(1e-9, std::abs(high) * 0.1);
    low -= share * extent;
    high += share * extent;
  }
};

// Maps a range onto pixels.
struct Scale {
  Range range;
  double begin, end;
  double operator()(double value) const {
    return begin + (value - range.low) / (range.high - range.low) * (end - begin);
  }
};

std::string tick_text(double value) {
  return fmt::format("{:g}", std::abs(value) < 1e-12 ? 0 : value);
}

std::string text_at(double x, double y, const char* anchor, const std::string& text,
                    const char* kind = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                     x, y, anchor, kind, escape_html(text));
}

std::string line_between(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

std::string open_svg(double height, const std::string& label) {
  return fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
      "aria-label=\"{2}\">\n",
      kWidth, height, escape_html(label));
}

std::string color_of(size_t i) { return fmt::format("var(--s{})", i % kColors); }

}  // namespace

std::vector<double> axis_ticks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double part = rough / power;
  const double step = power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  for (double t = std::ceil(low / step) * step; t <= high + 1e-9 * step; t += step)
    ticks.push_back(t);
  return ticks;
}

std::string bar_chart(const BarChart& chart) {
  constexpr double kRow = 26;
  constexpr double kLeft = 220;
  constexpr double kTop = 8;
  Range range;
  for (const Bar& bar : chart.bars) {
    if (bar.value.has_value()) range.add(*bar.value);
    if (bar.interval.has_value()) range.add(bar.interval->first), range.add(bar.interval->second);
  }
  range.widen(0.15);
  const double bottom = kTop + kRow * static_cast<double>(chart.bars.size());
  const Scale x{range, kLeft, kWidth - 70};
  std::string svg = open_svg(bottom + 48, chart.unit);
  for (const double t : axis_ticks(range.low, range.high, 6)) {
    svg += line_between(x(t), kTop, x(t), bottom, "class=\"axis\"");
    svg += text_at(x(t), bottom + 18, "middle", tick_text(t), "faint");
  }
  for (size_t i = 0; i < chart.bars.size(); ++i) {
    const Bar& bar = chart.bars[i];
    const double y = kTop + kRow * (static_cast<double>(i) + 0.5);
    svg += text_at(kLeft - 8, y + 4, "end", bar.label);
    if (!bar.value.has_value()) continue;
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" fill=\"var(--bar)\"/>\n",
        kLeft, y - 7, x(*bar.value) - kLeft);
    double end = x(*bar.value);
    if (bar.interval.has_value()) {
      const char* style = "stroke=\"var(--text)\" stroke-width=\"1.5\"";
      const double a = x(bar.interval->first);
      const double b = x(bar.interval->second);
      svg += line_between(a, y, b, y, style) + line_between(a, y - 4, a, y + 4, style) +
             line_between(b, y - 4, b, y + 4, style);
      end = std::max(end, b);
    }
    svg += text_at(end + 6, y + 4, "start", fmt::format("{:.4g}", *bar.value));
  }
  return svg + text_at((kLeft + kWidth - 70) / 2, bottom + 40, "middle", chart.unit, "faint") +
         "</svg>\n";
}

std::string line_chart(const LineChart& chart) {
  constexpr double kLeft = 64;
  constexpr double kRight = 190;  // room for the legend
  constexpr double kTop = 10;
  constexpr double kBottom = 300;
  Range across;
  Range up;
  for (const Series& series : chart.series) {
    for (const auto& [px, py] : series.points) {
      if (!std::isfinite(px) || !std::isfinite(py)) continue;
      across.add(px);
      up.add(py);
    }
  }
  across.widen(0);
  if (!(across.high > across.low)) across.widen(0.5);
  up.widen(0.05);
  const Scale x{across, kLeft, kWidth - kRight};
  const Scale y{up, kBottom, kTop};
  std::string svg = open_svg(kBottom + 48, chart.y_label + " by " + chart.x_label);
  for (const double t : axis_ticks(up.low, up.high, 6)) {
    svg += line_between(kLeft, y(t), kWidth - kRight, y(t), "class=\"axis\"");
    svg += text_at(kLeft - 8, y(t) + 4, "end", tick_text(t), "faint");
  }
  for (const double t : axis_ticks(across.low, across.high, 6)) {
    svg += text_at(x(t), kBottom + 18, "middle", tick_text(t), "faint");
  }
  for (size_t i = 0; i < chart.series.size(); ++i) {
    std::string points;
    for (const auto& [px, py] : chart.series[i].points) {
      if (std::isfinite(px) && std::isfinite(py))
        points += fmt::format("{:.1f},{:.1f} ", x(px), y(py));
    }
    svg +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n",
                    points, color_of(i));
    const double row = kTop + 10 + 18 * static_cast<double>(i);
    svg += line_between(kWidth - kRight + 12, row, kWidth - kRight + 32, row,
                        fmt::format("stroke=\"{}\" stroke-width=\"3\"", color_of(i)).c_str());
    svg += text_at(kWidth - kRight + 38, row + 4, "start", chart.series[i].name);
  }
  svg += text_at((kLeft + kWidth - kRight) / 2, kBottom + 40, "middle", chart.x_label, "faint");
  return svg + "</svg>\n";
}

}  // namespace rondo
