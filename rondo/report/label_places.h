// Label placement: next to the points, overlapping no other point or label.
#pragma once

#include "rondo/report/svg.h"

namespace rondo {

struct LabeledPoint {
  svg::Point point;
  std::string text;
};

struct PlacedLabel {
  svg::Point point;
  svg::Point at;  // the text's baseline
  svg::Anchor anchor = svg::Anchor::start;
  std::string text;
  bool far = false;  // from its point: draw a connecting line
};

struct LabelBox {
  double left, top, right, bottom;
  bool overlaps(const LabelBox& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// The bounding box of a label as rendered.
LabelBox box_of(const PlacedLabel& label);

// In the order of the points, nearest positions first. A label without a free position inside
// `frame` is omitted.
std::vector<PlacedLabel> place_labels(const std::vector<LabeledPoint>& points,
                                      const LabelBox& frame);

}  // namespace rondo
