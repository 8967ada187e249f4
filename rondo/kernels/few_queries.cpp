// A few queries, one by one.
#include "rondo/kernels/few_queries.h"

#include <algorithm>
#include <limits>

#include "rondo/kernels/decode_attention.h"

namespace rondo::kernels {
namespace {

constexpr int64_t kFew = 8;
constexpr int64_t kWorthThreads = 1 << 14;  // multiply-adds

int64_t place(const Strides& strides, int64_t batch, int64_t head, int64_t row) {
  return batch * strides.batch + head * strides.head + row * strides.row;
}

// Room for one head's work.
struct Room {
  std::vector<float> scores, hidden;
};

// What `visible` hides of query i, as something to add to scores; null where it hides nothing.
// False: everything is hidden.
bool hide(const AttentionProblem& p, int64_t batch, int64_t i, Room& room, const float*& bias) {
  bias = nullptr;
  if (p.visible == nullptr) return true;
  const uint8_t* visible = p.visible + batch * p.visible_batch + i * p.visible_row;
  const auto seen = std::count_if(visible, visible + p.keys, [](uint8_t v) { return v != 0; });
  if (seen == p.keys) return true;
  for (int64_t j = 0; j < p.keys; ++j) {
    room.hidden[static_cast<size_t>(j)] =
        visible[j] != 0 ? 0.0F : -std::numeric_limits<float>::infinity();
  }
  bias = room.hidden.data();
  return seen > 0;
}

void attend_head(const AttentionProblem& p, const Sink& out, int64_t batch, int64_t head,
                 Room& room) {
  OneQuery query;
  query.keys = static_cast<const float*>(p.k.data) + place(p.k.strides, batch, head, 0);
  query.values = static_cast<const float*>(p.v.data) + place(p.v.strides, batch, head, 0);
  query.stride = p.k.strides.row;
  query.count = p.keys;
  query.width = p.width;
  query.scale = p.factor[head];
  for (int64_t i = 0; i < p.queries; ++i) {
    float* to = static_cast<float*>(out.data) + place(out.strides, batch, head, i);
    query.q = static_cast<const float*>(p.q.data) + place(p.q.strides, batch, head, i);
    if (hide(p, batch, i, room, query.bias)) {
      attend_one(query, room.scores.data(), to);
    } else {
      std::fill_n(to, p.width, 0.0F);
    }
  }
}

}  // namespace

// Hidden keys are added -∞ before the factor: it must not be negative.
bool few_queries(const AttentionProblem& p) {
  return p.element == Element::fp32 && p.queries < kFew && p.bias == nullptr && p.dropout == 0.0 &&
         p.k.strides.row == p.v.strides.row &&
         (p.visible == nullptr ||
          std::all_of(p.factor, p.factor + p.heads, [](float f) { return f > 0.0F; }));
}

void attend_few(const AttentionProblem& p, const Sink& out, int threads) {
  const int64_t count = p.batch * p.heads;
  const bool worth = count * p.queries * p.keys * p.width >= kWorthThreads;
#pragma omp parallel num_threads(worth ? threads : 1)
  {
    Room room;
    room.scores.resize(static_cast<size_t>(p.keys));
    room.hidden.resize(static_cast<size_t>(p.keys));
#pragma omp for schedule(static)
    for (int64_t n = 0; n < count; ++n) attend_head(p, out, n / p.heads, n % p.heads, room);
  }
}

}  // namespace rondo::kernels
