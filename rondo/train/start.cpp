// Initial weights.
#include "rondo/train/start.h"

#include <fmt/format.h>

#include <cmath>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/config/trained_files.h"

namespace rondo {
namespace {

// [1, h·w, C] with h = w as a map [1, C, h, w].
Tensor as_map(const Tensor& grid) {
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(grid.size(1))));
  return grid.transpose(1, 2).reshape({1, grid.size(2), side, side});
}

bool is_head(const std::string& name) { return name.rfind("head.", 0) == 0; }

std::string shape_text(const Tensor& t) {
  return fmt::format("[{}]", fmt::join(t.sizes().vec(), ", "));
}

// Whether positions can be resized from one shape to the other: maps of one width, or square grids.
bool can_resize(const Tensor& from, const Tensor& to) {
  if (from.dim() != to.dim() || (from.dim() != 3 && from.dim() != 4)) return false;
  return from.size(from.dim() == 4 ? 1 : 2) == to.size(to.dim() == 4 ? 1 : 2);
}

}  // namespace

Tensor resize_positions(const Tensor& positions, const Shape& wanted, int64_t class_tokens) {
  if (positions.sizes().vec() == wanted) return positions;
  const auto resized = [](const Tensor& map, int64_t height, int64_t width) {
    return at::upsample_bicubic2d(map, {height, width}, /*align_corners=*/false);
  };
  if (wanted.size() == 4) return resized(positions, wanted[2], wanted[3]);
  const Tensor placeless = positions.narrow(1, 0, class_tokens);
  const Tensor grid = positions.narrow(1, class_tokens, positions.size(1) - class_tokens);
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(wanted[1] - class_tokens)));
  const Tensor map = resized(as_map(grid), side, side);  // [1, C, h, w]
  return at::cat({placeless, map.flatten(2).transpose(1, 2)}, 1);
}

void start_weights(Network& network, const TrainConfig& train) {
  nn::initialize(network, static_cast<uint64_t>(train.seed));
  if (train.start.empty()) return;
  if (train.start == "RUN") {
    throw Error(ExitCode::bad_input, "train.start: this recipe starts from a trained network",
                "--set train.start=RUN, a run folder or model file");
  }
  const at::NoGradGuard no_grad;
  const TrainedFiles files = find_trained(train.start);
  const bool images = std::string_view(files.model.task()) == "image";
  NamedTensors theirs = load_model_tensors(files.weights);
  const NamedTensors ours = named_tensors(network);
  const int64_t class_tokens = ours.count("class_token") > 0 ? 1 : 0;
  std::vector<std::string> problems;
  NamedTensors fitting;
  for (const auto& [name, tensor] : ours) {
    const auto found = theirs.find(name);
    if (found == theirs.end()) {
      problems.push_back(fmt::format("{} is missing", name));
      continue;
    }
    const Tensor& given = found->second;
    require_finite(given, name, files.weights);
    if (given.sizes() == tensor.sizes()) {
      fitting[name] = given;
    } else if (images && name == "positions" && can_resize(given, tensor)) {
      fitting[name] = resize_positions(given, tensor.sizes().vec(), class_tokens);
      log_info("{}: positions {} resized to {}", train.start, shape_text(given),
               shape_text(tensor));
    } else if (images && is_head(name)) {
      log_info("{}: {} is for other classes, initialized from the seed", train.start, name);
    } else {
      problems.push_back(
          fmt::format("{}: expected {}, got {}", name, shape_text(tensor), shape_text(given)));
    }
    theirs.erase(found);
  }
  for (const auto& [name, tensor] : theirs) problems.push_back(fmt::format("{} is unknown", name));
  if (!problems.empty()) {
    throw Error(ExitCode::bad_input,
                fmt::format("train.start: {}: weights do not fit this network: {}", train.start,
                            join(problems, "; ")),
                "start from a model of the same configuration");
  }
  for (const auto& [name, tensor] : fitting) {
    Tensor target = ours.at(name);
    target.copy_(tensor);
  }
}

}  // namespace rondo
