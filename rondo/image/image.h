// An image in memory, as used throughout rondo/image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo {

// Interleaved RGB, eight bits per channel, whatever the file had: gray becomes three equal
// channels, and transparency is dropped.
struct Image {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]

  Image() = default;
  Image(int64_t w, int64_t h) : width(w), height(h), pixels(static_cast<size_t>(w * h) * 3) {}

  uint8_t* row(int64_t y) { return pixels.data() + static_cast<size_t>(y * width) * 3; }
  const uint8_t* row(int64_t y) const { return pixels.data() + static_cast<size_t>(y * width) * 3; }
};

struct ImageSize {
  int64_t width = 0;
  int64_t height = 0;
};

using Color = std::array<uint8_t, 3>;

}  // namespace rondo
