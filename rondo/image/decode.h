// JPEG and PNG files to images. The files may be anybody's: sizes are compared with limits before
// anything of that size is allocated, and whatever is refused is Error{bad_input} naming the file.
//
//   JPEG   baseline and progressive, gray, YCbCr, RGB, and CMYK or YCCK in Adobe's inverted sense
//          (which is what all programs write); more than 500 scans are refused. Turned upright as
//          its EXIF orientation (1 to 8) says.
//   PNG    every kind: gray, palette, 16 bits (the high byte is kept), interlaced; transparency is
//          dropped, as Pillow's convert("RGB") does, not blended with some background. Turned
//          upright as its eXIf chunk says. No color management: gamma and profiles are not looked
//          at.
//
// Files cut short and damaged pixel data are refused; whatever follows the image's end is not
// looked at.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "rondo/image/image.h"

namespace rondo {

struct DecodeLimits {
  int64_t side = 16384;
  int64_t pixels = int64_t{1} << 26;  // the largest of ImageNet has 61 million
};

// Asked once, with the image's true size (upright). Answers which shorter side would be enough; a
// JPEG is then decoded at the smallest eighth of its size that has it, where that is cheaper: one
// to five eighths. 0: the image as it is.
using EnoughSide = std::function<int64_t(const ImageSize&)>;

// `name` is for messages.
Image decode_image(std::string_view bytes, const std::string& name, const EnoughSide& enough,
                   const DecodeLimits& limits = {});
Image decode_image(std::string_view bytes, const std::string& name, int64_t min_side = 0,
                   const DecodeLimits& limits = {});

// The two kinds themselves; decode_image() picks by the first bytes.
Image decode_jpeg(std::string_view bytes, const std::string& name, const EnoughSide& enough,
                  const DecodeLimits& limits = {});
Image decode_png(std::string_view bytes, const std::string& name, const EnoughSide& enough,
                 const DecodeLimits& limits = {});

// Whether a file's name ends like an image we read: .jpg, .jpeg, .png in any letter case.
bool is_image_name(std::string_view name);

}  // namespace rondo
