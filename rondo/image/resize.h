// Changing an image's size as Pillow does: convolution with a filter that widens when the image
// shrinks (antialiasing), first along rows and then along columns, each rounded to eight bits.
// Results equal Pillow's bit for bit.
#pragma once

#include <cstdint>

#include "rondo/image/image.h"

namespace rondo {

enum class Filter { bilinear, bicubic };  // bicubic with a = -0.5

// A part of an image, in pixels, not necessarily whole ones. Single precision, as Pillow has it.
struct Box {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;
};

// Pillow's image.resize((width, height), filter, box). The box must lie within the image and not be
// empty; the filter may look at pixels outside it.
Image resize(const Image& image, int64_t width, int64_t height, Filter filter, const Box& box);
Image resize(const Image& image, int64_t width, int64_t height, Filter filter);

// Cuts out a rectangle, which must lie within the image.
Image crop(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height);

// As resize() of crop(): pixels outside the rectangle take no part. Without the copy.
Image resize_crop(const Image& image, int64_t left, int64_t top, int64_t crop_width,
                  int64_t crop_height, int64_t width, int64_t height, Filter filter);

}  // namespace rondo
