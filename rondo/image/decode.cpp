// The format-independent parts of decoding.
#include "rondo/image/decode.h"

#include <fmt/core.h>

#include <climits>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/image/decode_parts.h"

namespace rondo {
namespace {

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool ends_like(std::string_view name, std::string_view lower_suffix) {
  if (name.size() < lower_suffix.size()) {
    return false;
  }
  const std::string_view end = name.substr(name.size() - lower_suffix.size());
  for (size_t i = 0; i < end.size(); ++i) {
    const char c = end[i];
    if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != lower_suffix[i]) {
      return false;
    }
  }
  return true;
}

// Numbers of a TIFF file, in the byte order it specifies. 0 beyond the end.
class TiffNumbers {
 public:
  TiffNumbers(std::string_view data, bool little) : data_(data), little_(little) {}
  uint32_t u16(size_t at) const { return little_ ? byte(at) | byte(at + 1) << 8U : big(at, 2); }
  uint32_t u32(size_t at) const { return little_ ? u16(at) | u16(at + 2) << 16U : big(at, 4); }

 private:
  uint32_t byte(size_t at) const {
    return at < data_.size() ? static_cast<uint8_t>(data_[at]) : 0U;
  }
  uint32_t big(size_t at, size_t count) const {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value = value << 8U | byte(at + i);
    }
    return value;
  }
  std::string_view data_;
  bool little_;
};

}  // namespace

bool is_image_name(std::string_view name) {
  return ends_like(name, ".jpg") || ends_like(name, ".jpeg") || ends_like(name, ".png");
}

void refuse_image(const std::string& name, const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", printable(name, PATH_MAX), what));
}

void check_image_size(const ImageSize& size, const std::string& name, const DecodeLimits& limits) {
  if (size.width < 1 || size.height < 1) {
    refuse_image(name, "the image has no pixels");
  }
  const bool long_side = size.width > limits.side || size.height > limits.side;
  if (long_side || size.width * size.height > limits.pixels) {
    refuse_image(name,
                 fmt::format("the image is {} x {}; expected at most {} per side and {} pixels "
                             "in total",
                             with_commas(size.width), with_commas(size.height),
                             with_commas(limits.side), with_commas(limits.pixels)));
  }
}

int exif_orientation(std::string_view tiff) {
  constexpr uint32_t kOrientationTag = 0x0112;
  constexpr uint32_t kShort = 3;
  constexpr uint32_t kLong = 4;
  const bool little = starts_with(tiff, "II");
  if (!little && !starts_with(tiff, "MM")) {
    return 1;
  }
  const TiffNumbers numbers(tiff, little);
  const size_t directory = numbers.u32(4);
  if (numbers.u16(2) != 42 || directory >= tiff.size()) {
    return 1;
  }
  const uint32_t entries = numbers.u16(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    if (entry + 12 > tiff.size()) {
      return 1;
    }
    if (numbers.u16(entry) != kOrientationTag) {
      continue;
    }
    const uint32_t type = numbers.u16(entry + 2);
    const uint32_t value = type == kShort  ? numbers.u16(entry + 8)
                           : type == kLong ? numbers.u32(entry + 8)
                                           : 1;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

ImageSize upright_size(const ImageSize& size, int orientation) {
  return orientation >= 5 ? ImageSize{size.height, size.width} : size;
}

Image upright(Image image, int orientation) {
  if (orientation <= 1) {
    return image;
  }
  const ImageSize size = upright_size({image.width, image.height}, orientation);
  Image out(size.width, size.height);
  const int64_t right = image.width - 1;
  const int64_t bottom = image.height - 1;
  // Maps the upright pixel (x, y) to the stored image: 5 to 8 swap columns and rows, and all but 5
  // reverse one or both of them.
  for (int64_t y = 0; y < out.height; ++y) {
    uint8_t* to = out.row(y);
    for (int64_t x = 0; x < out.width; ++x, to += 3) {
      int64_t column = orientation >= 5 ? y : x;
      int64_t row = orientation >= 5 ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) {
        column = right - column;
      }
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) {
        row = bottom - row;
      }
      const uint8_t* from = image.row(row) + column * 3;
      to[0] = from[0];
      to[1] = from[1];
      to[2] = from[2];
    }
  }
  return out;
}

Image decode_image(std::string_view bytes, const std::string& name, const EnoughSide& enough,
                   const DecodeLimits& limits) {
  if (starts_with(bytes, "\xFF\xD8\xFF")) {
    return decode_jpeg(bytes, name, enough, limits);
  }
  if (starts_with(bytes, "\x89PNG\r\n\x1A\n")) {
    return decode_png(bytes, name, enough, limits);
  }
  refuse_image(name, bytes.empty() ? "expected an image, got an empty file"
                                   : "expected a JPEG or PNG image, got something else");
}

Image decode_image(std::string_view bytes, const std::string& name, int64_t min_side,
                   const DecodeLimits& limits) {
  return decode_image(
      bytes, name, [min_side](const ImageSize&) { return min_side; }, limits);
}

}  // namespace rondo
