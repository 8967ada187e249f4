// Weight packing; memory in large pages.
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

// Bits per value.
size_t format_bits(PackedFormat format) {
  switch (format) {
    case PackedFormat::fp32:
      return 32;
    case PackedFormat::bf16:
      return 16;
    case PackedFormat::int8:
      break;
  }
  return 8;
}

// Calls put(place, row, column) for every value of w in panel order.
template <class Put>
void for_each_place(const PackedMatrix& m, const Put& put) {
  for (int64_t o = 0; o < m.out; ++o) {
    const int64_t panel = o / kPanel * m.columns() * kPanel;
    for (int64_t i = 0; i < m.in; ++i) put(panel + i * kPanel + o % kPanel, o, i);
  }
}

// Pairs of neighbors in a row are adjacent.
void pack_bf16(const float* w, const PackedMatrix& m, Bf16* to) {
  for (int64_t o = 0; o < m.out; ++o) {
    Bf16* panel = to + o / kPanel * m.columns() * kPanel + o % kPanel * 2;
    for (int64_t i = 0; i < m.in; ++i) narrow(w[o * m.in + i], panel[i / 2 * 2 * kPanel + i % 2]);
  }
}

void pack_int8(const float* w, const PackedMatrix& m, int8_t* to, float* scale) {
  const Int8Matrix rows = quantize_rows(w, m.out, m.in, Int8Products::plain);  // [out, step]
  for_each_place(m, [&](int64_t place, int64_t o, int64_t i) {
    to[place] = rows.q[static_cast<size_t>(o * rows.step + i)];
  });
  std::copy_n(rows.scale.begin(), m.out, scale);
}

}  // namespace

void PageArena::Free::operator()(void* pages) const { std::free(pages); }

void* PageArena::take(size_t bytes) {
  const size_t size = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  if (size > left_) {
    const size_t chunk = (std::max(size, kChunk) + kHugePage - 1) / kHugePage * kHugePage;
    chunks_.emplace_back(std::aligned_alloc(kHugePage, chunk));
    if (chunks_.back() == nullptr) throw std::bad_alloc();
    madvise(chunks_.back().get(), chunk, MADV_HUGEPAGE);  // if refused: small pages, only slower
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
  const auto rows = static_cast<size_t>(panels() * kPanel);
  return rows * static_cast<size_t>(columns()) * format_bits(format) / 8 +
         (scaled() ? rows * sizeof(float) : 0);
}

PackedMatrix shape_packed(int64_t out, int64_t in, PackedFormat format) {
  PackedMatrix m;
  m.format = format;
  m.out = out;
  m.in = in;
  return m;
}

void pack_into(const float* w, void* memory, PackedMatrix& m) {
  m.data = memory;
  if (m.format == PackedFormat::fp32) {
    auto* to = static_cast<float*>(memory);
    for_each_place(m, [&](int64_t place, int64_t o, int64_t i) { to[place] = w[o * m.in + i]; });
    return;
  }
  if (m.format == PackedFormat::bf16) return pack_bf16(w, m, static_cast<Bf16*>(memory));
  const size_t scales = sizeof(float) * static_cast<size_t>(m.panels() * kPanel);
  auto* scale = reinterpret_cast<float*>(static_cast<char*>(memory) + m.bytes() - scales);
  m.scale = scale;
  pack_int8(w, m, static_cast<int8_t*>(memory), scale);
}

PackedMatrix pack(const float* w, int64_t out, int64_t in, PackedFormat format, PageArena& arena) {
  PackedMatrix m = shape_packed(out, in, format);
  pack_into(w, arena.take(m.bytes()), m);
  return m;
}

}  // namespace rondo::kernels
