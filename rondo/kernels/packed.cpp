// Laying out weights; memory in large pages.
#include "rondo/kernels/packed.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "rondo/kernels/int8.h"
#include "rondo/kernels/vector_math.h"

namespace rondo::kernels {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kChunk = 2 * kHugePage;
constexpr size_t kCacheLine = 64;

size_t format_bytes(PackedFormat format) {
  if (format == PackedFormat::fp32) return sizeof(float);
  return format == PackedFormat::bf16 ? sizeof(uint16_t) : sizeof(int8_t);
}

// Calls put(place, row, column) for every number of w in the order of panels; `pair` columns of a
// row stand together.
template <class Put>
void for_each_place(const PackedMatrix& m, int64_t pair, const Put& put) {
  for (int64_t o = 0; o < m.out; ++o) {
    const int64_t panel = o / kPanel * m.columns() * kPanel;
    for (int64_t i = 0; i < m.in; ++i) {
      put(panel + (i / pair * kPanel + o % kPanel) * pair + i % pair, o, i);
    }
  }
}

}  // namespace

void PageArena::Free::operator()(void* pages) const { std::free(pages); }

void* PageArena::take(size_t bytes) {
  const size_t size = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  if (size > left_) {
    const size_t chunk = (std::max(size, kChunk) + kHugePage - 1) / kHugePage * kHugePage;
    chunks_.emplace_back(std::aligned_alloc(kHugePage, chunk));
    if (chunks_.back() == nullptr) throw std::bad_alloc();
    madvise(chunks_.back().get(), chunk, MADV_HUGEPAGE);  // refused: small pages, only slower
    next_ = static_cast<char*>(chunks_.back().get());
    left_ = chunk;
  }
  void* place = next_;
  std::memset(place, 0, size);
  next_ += size;
  left_ -= size;
  taken_ += size;
  return place;
}

size_t PackedMatrix::bytes() const {
  const auto numbers = static_cast<size_t>(panels() * kPanel * columns());
  return numbers * format_bytes(format) +
         (scale != nullptr ? sizeof(float) * panels() * kPanel : 0);
}

PackedMatrix pack(const float* w, int64_t out, int64_t in, PackedFormat format, PageArena& arena) {
  PackedMatrix m;
  m.format = format;
  m.out = out;
  m.in = in;
  void* data = arena.take(m.bytes());
  m.data = data;
  if (format == PackedFormat::fp32) {
    auto* to = static_cast<float*>(data);
    for_each_place(m, 1, [&](int64_t place, int64_t o, int64_t i) { to[place] = w[o * in + i]; });
  } else if (format == PackedFormat::bf16) {
    auto* to = static_cast<Bf16*>(data);
    for_each_place(m, 2,
                   [&](int64_t place, int64_t o, int64_t i) { narrow(w[o * in + i], to[place]); });
  } else {
    const Int8Matrix rows = quantize_rows(w, out, in, Int8Products::plain);  // [out, step]
    auto* to = static_cast<int8_t*>(data);
    for_each_place(m, 1, [&](int64_t place, int64_t o, int64_t i) {
      to[place] = rows.q[static_cast<size_t>(o * rows.step + i)];
    });
    auto* scale =
        static_cast<float*>(arena.take(sizeof(float) * static_cast<size_t>(m.panels() * kPanel)));
    std::copy_n(rows.scale.begin(), out, scale);
    m.scale = scale;
  }
  return m;
}

}  // namespace rondo::kernels
