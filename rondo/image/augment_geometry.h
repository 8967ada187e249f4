// Geometric operations: affine maps, rotation, mirroring, padding. Match Pillow bit for bit.
#pragma once

#include <array>
#include <cstdint>

#include "rondo/image/image.h"

namespace rondo {

enum class Sampling { nearest, bilinear, bicubic };

// Pillow's image.transform(image.size, AFFINE, matrix, sampling, fillcolor=fill): the pixel at
// (x, y) comes from (m0 x + m1 y + m2, m3 x + m4 y + m5). No antialiasing.
using AffineMatrix = std::array<double, 6>;
Image affine(const Image& image, const AffineMatrix& matrix, Sampling sampling, const Color& fill);

// Pillow's image.rotate(degrees, sampling, fillcolor=fill): counter-clockwise about the center,
// keeping the size.
Image rotate(const Image& image, double degrees, Sampling sampling, const Color& fill);

// Swaps left and right, in place.
void mirror(Image& image);

// The `width` x `height` region at (left, top), which may extend beyond the image: there the result
// is `fill`.
Image crop_padded(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height,
                  const Color& fill);

}  // namespace rondo
