// Chart primitives.
#include "rondo/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "rondo/report/page.h"

namespace rondo {

std::vector<double> axis_ticks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double part = rough / power;
  const double step = power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  for (double t = std::ceil(low / step - 1e-9) * step; t <= high + 1e-9 * step; t += step)
    ticks.push_back(std::abs(t) < 1e-9 * step ? 0 : t);
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  const double decades = std::log10(high / low);
  std::vector<double> parts = {1};
  if (decades < 3.5) parts = {1, 2, 5};
  if (decades < 0.8) return axis_ticks(low, high, 5);
  const int step = std::max(1, static_cast<int>(std::ceil(decades / 8)));
  std::vector<double> ticks;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  for (int power = first; power <= std::log10(high); power += step) {
    for (const double part : parts) {
      const double t = part * std::pow(10.0, power);
      if (t >= low * (1 - 1e-9) && t <= high * (1 + 1e-9)) ticks.push_back(t);
    }
  }
  return ticks;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size < 1e-12) return "0";
  if (size >= 1e9) return fmt::format("{:g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

namespace svg {
namespace {

using Rgb = std::array<double, 3>;

constexpr std::array<Rgb, 9> kViridis = {{{68, 1, 84},
                                          {71, 44, 122},
                                          {59, 81, 139},
                                          {44, 113, 142},
                                          {33, 144, 141},
                                          {39, 173, 129},
                                          {92, 200, 99},
                                          {170, 220, 50},
                                          {253, 231, 37}}};
constexpr std::array<Rgb, 9> kBlueOrange = {{{5, 48, 97},
                                             {33, 102, 172},
                                             {103, 169, 207},
                                             {209, 229, 240},
                                             {247, 247, 247},
                                             {254, 224, 182},
                                             {241, 163, 64},
                                             {179, 88, 6},
                                             {127, 59, 8}}};

Rgb color_at(double share, bool diverging) {
  const auto& anchors = diverging ? kBlueOrange : kViridis;
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(anchors.size() - 1);
  const size_t i = std::min(static_cast<size_t>(place), anchors.size() - 2);
  const double rest = place - static_cast<double>(i);
  Rgb color{};
  for (size_t c = 0; c < 3; ++c) {
    color[c] = anchors[i][c] + rest * (anchors[i + 1][c] - anchors[i][c]);
  }
  return color;
}

const char* anchor_name(Anchor anchor) {
  return anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
}

std::string class_of(std::string_view kind) {
  return kind.empty() ? "" : fmt::format(" class=\"{}\"", kind);
}

}  // namespace

void Range::add(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

void Range::widen(double share) {
  if (!(low <= high)) low = 0, high = 1;
  const double extent = high > low ? high - low : std::max(1e-9, std::abs(high) * 0.1);
  low -= share * extent;
  high += share * extent;
}

Scale::Scale(Range range, bool log, double begin, double end)
    : range_(range), log_(log), begin_(begin), end_(end) {
  if (!log_) return;
  range_.low = std::log10(range.low);
  range_.high = std::log10(range.high);
}

Scale Scale::of(const Axis& axis, Range data, double share, double begin, double end) {
  if (axis.log) {
    const bool usable = data.low > 0 && data.low <= data.high;
    Range powers;
    powers.low = usable ? std::log10(data.low) : 0;
    powers.high = usable ? std::log10(data.high) : 1;
    if (!(powers.high > powers.low)) powers.low -= 0.5, powers.high += 0.5;
    powers.widen(share);
    data.low = std::pow(10.0, powers.low);
    data.high = std::pow(10.0, powers.high);
  } else {
    data.widen(share);
    if (!(data.high > data.low)) data.widen(0.5);
  }
  data.low = axis.low.value_or(data.low);
  data.high = axis.high.value_or(data.high);
  Scale scale(data, axis.log, begin, end);
  scale.whole_ = axis.whole;
  return scale;
}

double Scale::operator()(double value) const {
  const double v = log_ ? std::log10(value) : value;
  return begin_ + (v - range_.low) / (range_.high - range_.low) * (end_ - begin_);
}

bool Scale::shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }

std::vector<double> Scale::ticks(int count) const {
  if (log_) return log_ticks(std::pow(10.0, range_.low), std::pow(10.0, range_.high));
  std::vector<double> ticks = axis_ticks(range_.low, range_.high, count);
  if (whole_ && ticks.size() > 1 && ticks[1] - ticks[0] < 1) {
    ticks = axis_ticks(range_.low, range_.high,
                       std::max(1, static_cast<int>(range_.high - range_.low)));
  }
  return ticks;
}

std::string open(double height, std::string_view title, double width) {
  return fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n"
      "<title>{2}</title>\n",
      width, height, escape_html(title));
}

std::string text(Point at, Anchor anchor, std::string_view text, std::string_view kind) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", at.x, at.y,
                     anchor_name(anchor), class_of(kind), escape_html(text));
}

std::string upward_text(Point at, Anchor anchor, std::string_view text, std::string_view kind) {
  return fmt::format(
      "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" text-anchor=\"{}\"{}>{}</text>\n",
      at.x, at.y, anchor_name(anchor), class_of(kind), escape_html(text));
}

std::string line(Point from, Point to, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", from.x,
                     from.y, to.x, to.y, style);
}

double text_width(std::string_view text) {
  double width = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) == 0x80U) continue;  // UTF-8 continuation byte
    width += byte >= 0xE3U                                                ? 13
             : byte == 'm' || byte == 'w' || (byte >= 'A' && byte <= 'Z') ? 9
                                                                          : 7;
  }
  return width;
}

std::string shortened(std::string_view text, double width) {
  if (text_width(text) <= width) return std::string(text);
  const auto within_character = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
  };
  while (!text.empty() && text_width(text) > width - 10) {
    while (text.size() > 1 && within_character(text.back())) text.remove_suffix(1);
    text.remove_suffix(1);
  }
  return std::string(text) + "…";
}

std::string series_color(size_t i) { return fmt::format("var(--s{})", i % 8); }

std::string series_dashes(size_t i) {
  static constexpr std::array<const char*, 4> kDashes = {"", "7 3", "2 3", "9 3 2 3"};
  const char* dashes = kDashes[i % kDashes.size()];
  return *dashes == '\0' ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes);
}

std::string mark(Point at, size_t i, std::string_view title) {
  const std::string inner =
      title.empty() ? "" : fmt::format("<title>{}</title>", escape_html(title));
  std::string shape;
  switch (i % 4) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\">{}</circle>\n",
                         at.x, at.y, series_color(i), inner);
    case 1:
      shape = fmt::format("M{:.1f} {:.1f}h7v7h-7z", at.x - 3.5, at.y - 3.5);
      break;
    case 2:
      shape = fmt::format("M{:.1f} {:.1f}l4.5 8h-9z", at.x, at.y - 5);
      break;
    default:
      shape = fmt::format("M{:.1f} {:.1f}l5 5l-5 5l-5 -5z", at.x, at.y - 5);
  }
  return fmt::format("<path d=\"{}\" fill=\"{}\">{}</path>\n", shape, series_color(i), inner);
}

std::string legend(double x, double top, double width, const std::vector<std::string>& names) {
  std::string markup;
  for (size_t i = 0; i < names.size(); ++i) {
    const double row = top + kLegendRow * static_cast<double>(i);
    const std::string style =
        fmt::format("stroke=\"{}\" stroke-width=\"3\"{}", series_color(i), series_dashes(i));
    markup += line({x, row}, {x + 24, row}, style);
    markup += text({x + 30, row + 4}, Anchor::start, shortened(names[i], width - 30));
  }
  return markup;
}

std::array<uint8_t, 3> map_rgb(double share, bool diverging) {
  const Rgb c = color_at(share, diverging);
  const auto byte = [](double v) { return static_cast<uint8_t>(std::lround(v)); };
  return {byte(c[0]), byte(c[1]), byte(c[2])};
}

std::string map_color(double share, bool diverging) {
  const auto [r, g, b] = map_rgb(share, diverging);
  return fmt::format("#{:02x}{:02x}{:02x}", r, g, b);
}

bool is_light(double share, bool diverging) {
  const Rgb c = color_at(share, diverging);
  return 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2] > 140;
}

std::string color_bar(const ColorBar& bar) {
  constexpr int kSteps = 32;
  constexpr double kThick = 14;
  std::string markup;
  const double step = bar.height / kSteps;
  for (int i = 0; i < kSteps; ++i) {
    markup += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
        bar.at.x, bar.at.y + bar.height - (i + 1) * step, kThick, step + 0.5,
        map_color((i + 0.5) / kSteps, bar.diverging));
  }
  if (bar.high > bar.low) {
    for (const double t : axis_ticks(bar.low, bar.high, bar.height < 120 ? 3 : 5)) {
      const double y = bar.at.y + bar.height * (1 - (t - bar.low) / (bar.high - bar.low));
      markup += text({bar.at.x + kThick + 5, y + 4}, Anchor::start, tick_text(t), "faint");
    }
  } else {
    markup += text({bar.at.x + kThick + 5, bar.at.y + bar.height / 2 + 4}, Anchor::start,
                   tick_text(bar.low), "faint");
  }
  return markup + text({bar.at.x, bar.at.y - 9}, Anchor::start, bar.label, "faint");
}

}  // namespace svg
}  // namespace rondo
