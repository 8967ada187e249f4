// Resizes images as Pillow does: convolution with a filter that widens when the image shrinks
// (antialiasing), first along rows, then along columns, each rounded to eight bits. Matches Pillow
// bit for bit.
#pragma once

#include <cstdint>

#include "rondo/image/image.h"

namespace rondo {

enum class Filter { bilinear, bicubic };  // bicubic with a = -0.5

// A region of an image in pixels, possibly fractional. Single precision, as in Pillow.
struct Box {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;
};

// Pillow's image.resize((width, height), filter, box). The box must be non-empty and within the
// image; the filter may use pixels outside the box.
Image resize(const Image& image, int64_t width, int64_t height, Filter filter, const Box& box);
Image resize(const Image& image, int64_t width, int64_t height, Filter filter);

// Extracts a rectangle, which must be within the image.
Image crop(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height);

// Same as resize() of crop(), without the copy: pixels outside the rectangle are not used.
Image resize_crop(const Image& image, int64_t left, int64_t top, int64_t crop_width,
                  int64_t crop_height, int64_t width, int64_t height, Filter filter);

}  // namespace rondo
