// Runs rows through compiled modules.
#include "rondo/nn/compiled.h"

#include <algorithm>

#include "rondo/kernels/packed_rows.h"

namespace rondo::nn {

void RowBuffer::resize(int64_t rows, int64_t width) {
  stride_ = std::max(stride_, kernels::round_up(width, kernels::kPanel));
  const auto count = static_cast<size_t>(rows * stride_ + kernels::kPanel);
  if (data_.size() >= count) return;
  data_.resize(count);
  const auto address = reinterpret_cast<uintptr_t>(data_.data());
  constexpr uintptr_t kPanelBytes = kernels::kPanel * sizeof(float);
  begin_ = data_.data() + (kPanelBytes - address % kPanelBytes) % kPanelBytes / sizeof(float);
}

int64_t CompiledLinear::column_step(int members) const {
  if (int8 != nullptr) return kernels::kInt8Columns;
  // If there are enough panels, as many as packed_rows() takes at a time.
  const bool many = w.panels() >= 2 * kernels::kPanelsTogether * members;
  return many ? kernels::kPanelsTogether * kernels::kPanel : kernels::kPanel;
}

std::pair<int64_t, int64_t> CompiledLinear::columns(const kernels::Member& member) const {
  const int64_t step = column_step(member.count);
  const auto [first, last] = member.share((w.out + step - 1) / step);
  return {first * step, std::min(last * step, w.out)};
}

void CompiledLinear::forward(const Rows& x, const Rows& y, const kernels::Member& member) const {
  if (int8 != nullptr) {
    thread_local kernels::Int8Rows rounded;  // reused by the next product
    kernels::prepare_input(x.count, w.in, rounded);
    kernels::quantize_input(x.data, x.stride, 0, x.count, w.in, rounded);
    const auto [first, last] =
        member.share((w.out + kernels::kInt8Columns - 1) / kernels::kInt8Columns);
    return kernels::int8_product(rounded, *int8, bias, first, last, y.data, y.stride);
  }
  const auto [begin, end] = columns(member);
  const int64_t first = begin / kernels::kPanel;
  const int64_t last = (end + kernels::kPanel - 1) / kernels::kPanel;
  if (x.count > 1) {
    return kernels::packed_rows(w, {x.data, x.count, x.stride}, bias, first, last,
                                {y.data, y.stride});
  }
  kernels::matvec(w, x.data, first, last, y.data);
  if (bias == nullptr) return;
  for (int64_t o = begin; o < end; ++o) y.data[o] += bias[o];
}

void CompiledNorm::forward(const Rows& x, const Rows& y) const {
  for (int64_t r = 0; r < x.count; ++r) {
    kernels::norm_one(x[r], weight, bias, epsilon, width, y[r]);
  }
}

void CompiledLowRank::forward(const Rows& x, const Rows& low, const Rows& y) const {
  const kernels::Member alone;
  if (down.out == 0) return CompiledLinear{up, nullptr}.forward(x, y, alone);
  CompiledLinear{down, nullptr}.forward(x, low, alone);
  CompiledLinear{up, nullptr}.forward(low, y, alone);
}

void CompiledFeedForward::hidden(const Rows& u, const Rows& inner, const Rows& h,
                                 const kernels::Member& member) const {
  up.forward(u, h, member);
  const auto [begin, end] = up.columns(member);
  for (int64_t r = 0; r < u.count; ++r) {
    for (int64_t o = begin; o < end && inner.count > 0; ++o) h[r][o] += inner[r][o];
    const int64_t count = kernels::round_up(end - begin, kernels::kPanel);  // with padding
    if (activation == Activation::gelu) {
      kernels::gelu_one(h[r] + begin, count);
    } else {
      kernels::relu_one(h[r] + begin, count);
    }
  }
}

CompiledLinear WeightPacker::linear(const Tensor& w, const Tensor& bias) {
  CompiledLinear map;
  map.bias = vector(bias);
  if (!int8_inputs_) {
    map.w = matrix(w);
    return map;
  }
  const Tensor rows = w.detach().to(at::kFloat).contiguous();
  int8_.push_back(std::make_unique<kernels::Int8Matrix>(
      kernels::quantize_rows(rows.data_ptr<float>(), rows.size(0), rows.size(1))));
  map.int8 = int8_.back().get();
  map.w = kernels::shape_packed(rows.size(0), rows.size(1), kernels::PackedFormat::int8);
  return map;
}

kernels::PackedMatrix WeightPacker::matrix(const Tensor& w) {
  const Tensor rows = w.detach().to(at::kFloat).contiguous();  // [out, in]
  return kernels::pack(rows.data_ptr<float>(), rows.size(0), rows.size(1), format_, arena_);
}

const float* WeightPacker::vector(const Tensor& v) {
  if (!v.defined()) return nullptr;
  kept_.push_back(v.detach().to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous());
  return kept_.back().data_ptr<float>();
}

}  // namespace rondo::nn
