// Attention to tokens that stand in other rows.
#include "rondo/recurrence/beam_cache.h"

#include <limits>

#include "rondo/base/error.h"
#include "rondo/kernels/decode_attention.h"
#include "rondo/nn/attention.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo {
namespace {

// [R, H, 1, d] → [R, H · d]
Tensor as_rows(const Tensor& x) {
  return nn::merge_heads(x).to(at::kFloat).squeeze(1).contiguous();
}

}  // namespace

void BeamCache::follow(const std::vector<int64_t>& from) {
  std::vector<std::vector<int64_t>> places;
  places.reserve(from.size());
  for (const int64_t row : from) places.push_back(places_[static_cast<size_t>(row)]);
  places_ = std::move(places);
}

void BeamCache::add_token(const Tensor& visible) {
  if (visible_.empty()) places_.resize(static_cast<size_t>(visible.size(0)));
  RONDO_ASSERT(visible.size(0) == static_cast<int64_t>(places_.size()));
  visible_.push_back(visible.all().item<bool>() ? Tensor() : visible.contiguous());
  for (size_t row = 0; row < places_.size(); ++row) {
    places_[row].push_back(static_cast<int64_t>(row));
  }
}

Tensor BeamCache::attend(int64_t level, const Tensor& q, const Tensor& k, const Tensor& v,
                         double factor) {
  const auto index = static_cast<size_t>(level);
  if (levels_.size() <= index) levels_.resize(index + 1);
  levels_[index].push_back({as_rows(k), as_rows(v)});
  RONDO_ASSERT(levels_[index].size() == visible_.size());
  const bool fused = nn::kernels_in_use() == nn::Kernels::fused;
  return fused ? attend_fused(levels_[index], q, factor)
               : attend_plainly(levels_[index], q, factor);
}

Tensor BeamCache::attend_fused(const std::vector<Token>& level, const Tensor& q,
                               double factor) const {
  const int64_t heads = q.size(1);
  const int64_t d = q.size(3);
  const Tensor queries = as_rows(q);  // [R, H · d]
  const Tensor out = at::empty_like(queries);
  const size_t count = level.size();
  const auto attend_row = [&](int64_t row, std::vector<const float*>& rows,
                              std::vector<float>& scores, std::vector<float>& bias) {
    bool hidden = false;
    for (size_t t = 0; t < count; ++t) {
      const int64_t place = places_[static_cast<size_t>(row)][t];
      rows[t] = level[t].keys.data_ptr<float>() + place * heads * d;
      rows[count + t] = level[t].values.data_ptr<float>() + place * heads * d;
      const bool seen = !visible_[t].defined() || visible_[t].data_ptr<bool>()[place];
      bias[t] = seen ? 0.0F : -std::numeric_limits<float>::infinity();
      hidden = hidden || !seen;
    }
    kernels::ScatteredQuery query;
    query.keys = rows.data();
    query.values = rows.data() + count;
    query.count = static_cast<int64_t>(count);
    query.width = d;
    query.scale = static_cast<float>(factor);
    query.bias = hidden ? bias.data() : nullptr;
    for (int64_t h = 0; h < heads; ++h) {
      query.offset = h * d;
      query.q = queries.data_ptr<float>() + (row * heads + h) * d;
      kernels::attend_one(query, scores.data(), out.data_ptr<float>() + (row * heads + h) * d);
    }
  };
  constexpr int64_t kWorthThreads = 1 << 13;  // multiply-adds
  const int64_t each = heads * d * static_cast<int64_t>(count);
  at::parallel_for(0, q.size(0), kWorthThreads / each + 1, [&](int64_t first, int64_t last) {
    std::vector<const float*> rows(2 * count);
    std::vector<float> scores(count);
    std::vector<float> bias(count);
    for (int64_t row = first; row < last; ++row) attend_row(row, rows, scores, bias);
  });
  return nn::split_heads(out.unsqueeze(1), heads);
}

Tensor BeamCache::attend_plainly(const std::vector<Token>& level, const Tensor& q,
                                 double factor) const {
  std::vector<Tensor> keys;
  std::vector<Tensor> values;
  std::vector<Tensor> visible;
  for (size_t t = 0; t < level.size(); ++t) {
    const Tensor place = at::empty({q.size(0)}, at::kLong);
    for (int64_t r = 0; r < q.size(0); ++r) {
      place.data_ptr<int64_t>()[r] = places_[static_cast<size_t>(r)][t];
    }
    keys.push_back(level[t].keys.index_select(0, place));
    values.push_back(level[t].values.index_select(0, place));
    visible.push_back(visible_[t].defined() ? visible_[t].index_select(0, place)
                                            : at::ones({q.size(0), 1}, at::kBool));
  }
  nn::AttendOptions how;
  how.factor = factor;
  how.visible = at::cat(visible, 1).unsqueeze(1).unsqueeze(1);  // [R, 1, 1, T]
  return nn::attend(q.to(at::kFloat), nn::split_heads(at::stack(keys, 1), q.size(1)),
                    nn::split_heads(at::stack(values, 1), q.size(1)), how, false, Scope());
}

}  // namespace rondo
