// Validating a state against its description.
#include "rondo/recurrence/state_layout.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/nn/tensor_file.h"

namespace rondo {
namespace {

constexpr const char* kStateAdvice =
    "use a state written by this model: with --state-out or 'rondo state read'";

std::string extent_text(const Extent& extent) {
  if (extent.least == extent.most) return std::to_string(extent.least);
  if (extent.most == kUnlimited) return fmt::format("{} or more", extent.least);
  return fmt::format("{} to {}", extent.least, extent.most);
}

// "F32 [1, 8 to 16, 2, 8]"
std::string expected_text(const StateEntry& entry) {
  std::vector<std::string> extents;
  for (const Extent& extent : entry.shape) extents.push_back(extent_text(extent));
  const DType dtype = tensor_dtype(at::empty({0}, entry.type));
  return fmt::format("{} [{}]", dtype_name(dtype), join(extents, ", "));
}

bool fits_shape(const Tensor& tensor, const std::vector<Extent>& shape) {
  if (tensor.dim() != static_cast<int64_t>(shape.size())) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t extent = tensor.size(static_cast<int64_t>(i));
    if (extent < shape[i].least || extent > shape[i].most) return false;
  }
  return true;
}

[[noreturn]] void refuse_state(const std::string& source, const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", source, what), kStateAdvice);
}

}  // namespace

std::string StateLayout::problem(const Tensor& tensor, const StateEntry& entry, const State& state,
                                 Types types) const {
  const bool alike =
      tensor.scalar_type() == entry.type ||
      (types == Types::any_float && tensor.is_floating_point() && c10::isFloatingType(entry.type));
  if (!alike || !fits_shape(tensor, entry.shape)) {
    return fmt::format("expected {}, got {}", expected_text(entry), type_and_shape(tensor));
  }
  const Tensor other = entry.like.empty() ? Tensor() : state.get(entry.like);
  if (other.defined() && other.sizes() != tensor.sizes()) {
    return fmt::format("expected the shape of {}, [{}], got [{}]", entry.like,
                       fmt::join(other.sizes().vec(), ", "), fmt::join(tensor.sizes().vec(), ", "));
  }
  return {};
}

void StateLayout::check_shapes(const State& state, const std::string& source, Types types) const {
  std::vector<std::string> problems;
  for (const auto& [name, entry] : entries_) {
    const Tensor tensor = state.get(name);
    if (!tensor.defined()) {
      if (!entry.optional) {
        problems.push_back(fmt::format("missing: {} {}", name, expected_text(entry)));
      }
      continue;
    }
    const std::string wrong = problem(tensor, entry, state, types);
    if (!wrong.empty()) problems.push_back(fmt::format("{}: {}", name, wrong));
  }
  for (const auto& [name, tensor] : state.tensors()) {
    if (entries_.count(name) == 0) {
      problems.push_back(fmt::format("unknown: {} {}", printable(name), type_and_shape(tensor)));
    }
  }
  if (problems.empty()) return;
  refuse_state(source, "the state does not match the model:" + list_problems(problems));
}

void StateLayout::check_values(const State& state, const std::string& source) const {
  for (const auto& [name, entry] : entries_) {
    const Tensor tensor = state.get(name);
    if (!tensor.defined() || tensor.numel() == 0) continue;
    const auto refuse = [&, &n = name](const std::string& what) {
      refuse_state(source, fmt::format("tensor '{}': {}", n, what));
    };
    if (tensor.is_floating_point()) {
      const std::string wrong = non_finite_text(tensor);
      if (!wrong.empty()) refuse(wrong);
    } else if (tensor.scalar_type() == at::kLong) {
      const int64_t low = tensor.min().item<int64_t>();
      const int64_t high = tensor.max().item<int64_t>();
      if (low < entry.least || high > entry.most) {
        refuse(fmt::format("expected values from {} to {}, got {}", entry.least, entry.most,
                           low < entry.least ? low : high));
      }
      if (entry.values.defined() && !tensor.equal(entry.values)) {
        const int64_t row = tensor.ne(entry.values).nonzero()[0][0].item<int64_t>();
        refuse(fmt::format("expected {} in row {}, got {}", entry.values[row].item<int64_t>(), row,
                           tensor[row].item<int64_t>()));
      }
    }
  }
}

}  // namespace rondo
