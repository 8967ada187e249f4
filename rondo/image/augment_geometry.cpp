// The operations of augment_geometry.h, with the arithmetic of Pillow's three sampling filters.
#include "rondo/image/augment_geometry.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace rondo {
namespace {

void put_pixel(uint8_t* to, const uint8_t* from) {
  to[0] = from[0];
  to[1] = from[1];
  to[2] = from[2];
}

Image filled(int64_t width, int64_t height, const Color& fill) {
  Image out(width, height);
  for (size_t i = 0; i < out.pixels.size(); i += 3) {
    put_pixel(out.pixels.data() + i, fill.data());
  }
  return out;
}

// Byte offsets within a row of the pixels from `first` on, clamped to the edges.
template <size_t N>
std::array<int64_t, N> clamped_columns(int64_t first, int64_t width) {
  std::array<int64_t, N> columns;
  for (size_t i = 0; i < N; ++i) {
    columns[i] = std::clamp<int64_t>(first + static_cast<int64_t>(i), 0, width - 1) * 3;
  }
  return columns;
}

void sample_bilinear(const Image& image, double x, double y, uint8_t* out) {
  const double left = std::floor(x - 0.5);
  const double top = std::floor(y - 0.5);
  const double dx = x - 0.5 - left;
  const double dy = y - 0.5 - top;
  const auto columns = clamped_columns<2>(static_cast<int64_t>(left), image.width);
  const auto row = static_cast<int64_t>(top);
  const uint8_t* above = image.row(std::clamp<int64_t>(row, 0, image.height - 1));
  const uint8_t* below = image.row(std::clamp<int64_t>(row + 1, 0, image.height - 1));
  for (int c = 0; c < 3; ++c) {
    const auto mixed = [&](const uint8_t* from) {
      const int a = from[columns[0] + c];
      return a + (from[columns[1] + c] - a) * dx;
    };
    const double v = mixed(above);
    out[c] = static_cast<uint8_t>(v + (mixed(below) - v) * dy);
  }
}

// Cubic interpolation through four neighbors, at `d` after the second, with Pillow's a = -1 and
// order of operations.
template <class Number>
double cubic_between(Number a, Number b, Number c, Number e, double d) {
  const double p1 = b;
  const double p2 = -a + c;
  const double p3 = 2 * (a - b) + c - e;
  const double p4 = -a + b - c + e;
  return p1 + d * (p2 + d * (p3 + d * p4));
}

void sample_bicubic(const Image& image, double x, double y, uint8_t* out) {
  const double left = std::floor(x - 0.5);
  const double top = std::floor(y - 0.5);
  const double dx = x - 0.5 - left;
  const double dy = y - 0.5 - top;
  const auto columns = clamped_columns<4>(static_cast<int64_t>(left) - 1, image.width);
  std::array<const uint8_t*, 4> rows;
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t row = static_cast<int64_t>(top) - 1 + i;
    rows[static_cast<size_t>(i)] = image.row(std::clamp<int64_t>(row, 0, image.height - 1));
  }
  for (int c = 0; c < 3; ++c) {
    std::array<double, 4> v;
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t* row = rows[i] + c;
      v[i] = cubic_between<int>(row[columns[0]], row[columns[1]], row[columns[2]], row[columns[3]],
                                dx);
    }
    const double value = cubic_between(v[0], v[1], v[2], v[3], dy);
    out[c] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
  }
}

Image affine_smooth(const Image& image, const AffineMatrix& m, Sampling sampling,
                    const Color& fill) {
  Image out(image.width, image.height);
  const auto width = static_cast<double>(image.width);
  const auto height = static_cast<double>(image.height);
  uint8_t* to = out.pixels.data();
  for (int64_t row = 0; row < out.height; ++row) {
    const double yin = static_cast<double>(row) + 0.5;
    for (int64_t column = 0; column < out.width; ++column, to += 3) {
      const double xin = static_cast<double>(column) + 0.5;
      const double x = m[0] * xin + m[1] * yin + m[2];
      const double y = m[3] * xin + m[4] * yin + m[5];
      if (!(x >= 0.0 && x < width && y >= 0.0 && y < height)) {
        put_pixel(to, fill.data());
      } else if (sampling == Sampling::bicubic) {
        sample_bicubic(image, x, y, to);
      } else {
        sample_bilinear(image, x, y, to);
      }
    }
  }
  return out;
}

// Scaling and shifting only: Pillow accumulates the step along both axes.
Image scale_nearest(const Image& image, const AffineMatrix& m, const Color& fill) {
  Image out = filled(image.width, image.height, fill);
  std::vector<int64_t> columns(static_cast<size_t>(out.width));
  double x = m[2] + m[0] * 0.5;
  for (int64_t& column : columns) {
    column = x >= 0.0 && x < static_cast<double>(image.width) ? static_cast<int64_t>(x) : -1;
    x += m[0];
  }
  double y = m[5] + m[4] * 0.5;
  for (int64_t row = 0; row < out.height; ++row, y += m[4]) {
    if (!(y >= 0.0 && y < static_cast<double>(image.height))) {
      continue;
    }
    const uint8_t* from = image.row(static_cast<int64_t>(y));
    uint8_t* to = out.row(row);
    for (const int64_t column : columns) {
      if (column >= 0) {
        put_pixel(to, from + column * 3);
      }
      to += 3;
    }
  }
  return out;
}

// The general case: 16 fraction bits. 64-bit integers cannot overflow where Pillow would switch to
// floating point.
Image affine_nearest(const Image& image, const AffineMatrix& m, const Color& fill) {
  const auto fixed = [](double v) { return static_cast<int64_t>(std::floor(v * 65536.0 + 0.5)); };
  Image out = filled(image.width, image.height, fill);
  int64_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
  int64_t row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  uint8_t* to = out.pixels.data();
  for (int64_t row = 0; row < out.height; ++row) {
    int64_t x = row_x;
    int64_t y = row_y;
    for (int64_t column = 0; column < out.width; ++column, to += 3) {
      const int64_t from_x = x >> 16;
      const int64_t from_y = y >> 16;
      if (from_x >= 0 && from_x < image.width && from_y >= 0 && from_y < image.height) {
        put_pixel(to, image.row(from_y) + from_x * 3);
      }
      x += fixed(m[0]);
      y += fixed(m[3]);
    }
    row_x += fixed(m[1]);
    row_y += fixed(m[4]);
  }
  return out;
}

// Rounds to 15 decimals as Python does: nearest decimal, ties to even, back to the nearest double.
double rounded_15(double value) {
  char text[64];
  (void)std::snprintf(text, sizeof(text), "%.15f", value);
  return std::strtod(text, nullptr);
}

// Rotates by quarter turns; 1 and 3 for square images only.
Image quarter_turns(const Image& image, int turns) {
  Image out(image.width, image.height);
  const int64_t last = image.width - 1;
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      const uint8_t* from = turns == 2   ? image.row(image.height - 1 - y) + (last - x) * 3
                            : turns == 1 ? image.row(x) + (last - y) * 3
                                         : image.row(last - x) + y * 3;
      put_pixel(out.row(y) + x * 3, from);
    }
  }
  return out;
}

}  // namespace

Image affine(const Image& image, const AffineMatrix& matrix, Sampling sampling, const Color& fill) {
  if (sampling != Sampling::nearest) {
    return affine_smooth(image, matrix, sampling, fill);
  }
  return matrix[1] == 0 && matrix[3] == 0 ? scale_nearest(image, matrix, fill)
                                          : affine_nearest(image, matrix, fill);
}

Image rotate(const Image& image, double degrees, Sampling sampling, const Color& fill) {
  double angle = std::fmod(degrees, 360.0);
  angle += angle < 0 ? 360.0 : 0.0;
  if (angle == 0 || angle == 360) {
    return image;
  }
  if (angle == 180) {
    return quarter_turns(image, 2);
  }
  if ((angle == 90 || angle == 270) && image.width == image.height) {
    return quarter_turns(image, angle == 90 ? 1 : 3);
  }
  constexpr double kRadians = 3.141592653589793 / 180.0;
  const double back = -(angle * kRadians);
  const double cosine = rounded_15(std::cos(back));
  const double sine = rounded_15(std::sin(back));
  const double center_x = static_cast<double>(image.width) / 2.0;
  const double center_y = static_cast<double>(image.height) / 2.0;
  const double minus_sine = rounded_15(-std::sin(back));
  const AffineMatrix matrix = {
      cosine,     sine,   cosine * -center_x + sine * -center_y + center_x,
      minus_sine, cosine, minus_sine * -center_x + cosine * -center_y + center_y};
  return affine(image, matrix, sampling, fill);
}

void mirror(Image& image) {
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* row = image.row(y);
    for (int64_t a = 0, b = image.width - 1; a < b; ++a, --b) {
      std::swap_ranges(row + a * 3, row + a * 3 + 3, row + b * 3);
    }
  }
}

Image crop_padded(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height,
                  const Color& fill) {
  Image out = filled(width, height, fill);
  const int64_t first = std::max<int64_t>(0, -left);
  const int64_t last = std::min(width, image.width - left);
  for (int64_t y = std::max<int64_t>(0, -top); y < std::min(height, image.height - top); ++y) {
    if (first < last) {
      std::copy_n(image.row(y + top) + (first + left) * 3, (last - first) * 3,
                  out.row(y) + first * 3);
    }
  }
  return out;
}

}  // namespace rondo
