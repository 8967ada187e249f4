// Decodes JPEG and PNG files. The files are untrusted: sizes are checked against limits before
// anything of that size is allocated, and rejected files throw Error{bad_input} naming the file.
//
//   JPEG   baseline and progressive, gray, YCbCr, RGB, and CMYK or YCCK with Adobe's inversion
//          (which all programs write); more than 500 scans are rejected. Rotated to its EXIF
//          orientation (1 to 8).
//   PNG    all formats: gray, palette, 16 bits (the high byte is kept), interlaced; transparency
//          is dropped, as by Pillow's convert("RGB"), not blended with a background. Rotated
//          as its eXIf chunk says. No color management: gamma and profiles are ignored.
//
// Truncated files and damaged pixel data are rejected; anything after the end of the image is
// ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "rondo/image/image.h"

namespace rondo {

struct DecodeLimits {
  int64_t side = 16384;
  int64_t pixels = int64_t{1} << 26;  // the largest ImageNet image has 61 million
};

// Called once, with the image's true size (upright). Returns which shorter side is sufficient; a
// JPEG is then decoded at the smallest eighth of its size that provides it, if that is cheaper: one
// to five eighths. 0: full size.
using EnoughSide = std::function<int64_t(const ImageSize&)>;

// `name` is used in messages.
Image decode_image(std::string_view bytes, const std::string& name, const EnoughSide& enough,
                   const DecodeLimits& limits = {});
Image decode_image(std::string_view bytes, const std::string& name, int64_t min_side = 0,
                   const DecodeLimits& limits = {});

// The two decoders; decode_image() chooses by the first bytes.
Image decode_jpeg(std::string_view bytes, const std::string& name, const EnoughSide& enough,
                  const DecodeLimits& limits = {});
Image decode_png(std::string_view bytes, const std::string& name, const EnoughSide& enough,
                 const DecodeLimits& limits = {});

// Whether a file name has the suffix of a supported format: .jpg, .jpeg, .png in any case.
bool is_image_name(std::string_view name);

}  // namespace rondo
