// Searches for free positions, nearest first.
#include "rondo/report/label_places.h"

#include <algorithm>
#include <array>

namespace rondo {
namespace {

constexpr double kMark = 6;  // half the size of a marker, with some margin
constexpr double kLineHeight = 14;

PlacedLabel label_at(const LabeledPoint& p, double dx, double dy, double distance) {
  PlacedLabel label;
  label.point = p.point;
  label.text = p.text;
  label.at = {p.point.x + dx * distance, p.point.y + dy * distance + 4};
  label.anchor = dx > 0 ? svg::Anchor::start : dx < 0 ? svg::Anchor::end : svg::Anchor::middle;
  label.far = distance > 24;
  return label;
}

}  // namespace

LabelBox box_of(const PlacedLabel& label) {
  const double width = svg::text_width(label.text);
  const double left = label.anchor == svg::Anchor::start    ? label.at.x
                      : label.anchor == svg::Anchor::middle ? label.at.x - width / 2
                                                            : label.at.x - width;
  return {left, label.at.y - kLineHeight + 3, left + width, label.at.y + 4};
}

std::vector<PlacedLabel> place_labels(const std::vector<LabeledPoint>& points,
                                      const LabelBox& frame) {
  static constexpr std::array<std::array<double, 2>, 8> kDirections = {
      {{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {1, -1}, {1, 1}, {-1, -1}, {-1, 1}}};
  std::vector<LabelBox> taken;
  for (const LabeledPoint& p : points) {
    taken.push_back({p.point.x - kMark, p.point.y - kMark, p.point.x + kMark, p.point.y + kMark});
  }
  std::vector<PlacedLabel> placed;
  for (const LabeledPoint& p : points) {
    bool found = false;
    for (double distance = 10; distance <= 160 && !found; distance += 7) {
      for (const auto& [dx, dy] : kDirections) {
        const PlacedLabel label = label_at(p, dx, dy, distance);
        const LabelBox box = box_of(label);
        const bool inside = box.left >= frame.left && box.right <= frame.right &&
                            box.top >= frame.top && box.bottom <= frame.bottom;
        const bool hit = std::any_of(taken.begin(), taken.end(),
                                     [&](const LabelBox& other) { return box.overlaps(other); });
        if (!inside || hit) continue;
        taken.push_back(box);
        placed.push_back(label);
        found = true;
        break;
      }
    }
  }
  return placed;
}

}  // namespace rondo
