// Tensors as lists and JSON.
#include "rondo/study/report.h"

#include <cmath>

namespace rondo::study {

std::vector<double> list_of(const Tensor& values) {
  const Tensor flat = values.to(at::kDouble).contiguous().flatten();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

Grid grid_of(const Tensor& values) {
  Grid grid;
  for (int64_t r = 0; r < values.size(0); ++r) grid.push_back(list_of(values[r]));
  return grid;
}

nlohmann::json json_of(const Tensor& values) {
  nlohmann::json json = nlohmann::json::array();
  if (values.dim() > 1) {
    for (int64_t i = 0; i < values.size(0); ++i) json.push_back(json_of(values[i]));
    return json;
  }
  for (const double v : list_of(values)) {
    json.push_back(std::isfinite(v) ? nlohmann::json(v) : nlohmann::json());
  }
  return json;
}

}  // namespace rondo::study
