// Where the labels of points go: beside their points, over no other point and no other label.
#pragma once

#include "rondo/report/svg.h"

namespace rondo {

struct LabeledPoint {
  svg::Point point;
  std::string text;
};

struct PlacedLabel {
  svg::Point point;
  svg::Point at;  // of the text's baseline
  svg::Anchor anchor = svg::Anchor::start;
  std::string text;
  bool far = false;  // from its point: tie it
};

struct LabelBox {
  double left, top, right, bottom;
  bool overlaps(const LabelBox& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// The box of a label as it will be shown.
LabelBox box_of(const PlacedLabel& label);

// In the order of the points; nearer places are tried first. A label that finds no free place
// within `frame` is left out.
std::vector<PlacedLabel> place_labels(const std::vector<LabeledPoint>& points,
                                      const LabelBox& frame);

}  // namespace rondo
