// The loss around trained weights along two random directions, filter-normalized (Li et al., 2018):
// SReT's Figure 9. Directions and points are functions of the seed, so that processes can share the
// work, a stopped study can resume, and several networks are plotted along the same axes.
#pragma once

#include "rondo/study/report.h"
#include "rondo/study/subject.h"

namespace rondo::study {

struct LandscapeOptions {
  int64_t points = 25;  // per side
  double radius = 1.0;  // the plane spans -radius to radius
  uint64_t seed = 1;
};

struct PlanePoint {
  int64_t row = 0, column = 0;
};

// A direction for every weight: Gaussian, each filter (slice of the first dimension) scaled to the
// norm of the network's own; one-dimensional weights (biases, norms) are not moved.
NamedTensors filter_normalized_direction(const Network& network, uint64_t seed,
                                         const std::string& name);

// A network whose weights are moved over the plane, and restored at the end.
class LossPlane {
 public:
  // `batches`: the data on which the loss is computed, all of it at every point.
  LossPlane(Network& network, std::vector<Batch> batches, const LandscapeOptions& options);
  ~LossPlane();
  LossPlane(const LossPlane&) = delete;
  LossPlane& operator=(const LossPlane&) = delete;

  double loss(const PlanePoint& point);  // mean cross-entropy; may be infinite
  double coordinate(int64_t i) const;    // of row or column i

 private:
  void move_to(double x, double y);

  Network& network_;
  std::vector<Batch> batches_;
  LandscapeOptions options_;
  NamedTensors origin_, first_, second_;
};

// The losses computed so far, in a file with one line per point.
class PointFile {
 public:
  // `key` identifies the study; a file with a different key is overwritten.
  PointFile(std::string path, std::string key);
  // By row and column, from this file and those of other processes next to it (path + ".N").
  std::map<std::pair<int64_t, int64_t>, double> read() const;
  void add(const PlanePoint& point, double loss);

 private:
  std::string path_, key_;
};

struct Landscape {
  std::string name;
  LandscapeOptions options;
  Grid losses;  // [row][column]
  int64_t items = 0;
};

// All landscapes share one color scale.
StudyReport landscape_report(const std::vector<Landscape>& found);

}  // namespace rondo::study
