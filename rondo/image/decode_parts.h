// What the decoders share. Internal to decode*.cpp and the contact sheet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rondo/image/decode.h"

namespace rondo {

// Error{bad_input} about the file `name`.
[[noreturn]] void refuse_image(const std::string& name, const std::string& what);

// Refuses a size that is empty or beyond the limits.
void check_image_size(const ImageSize& size, const std::string& name, const DecodeLimits& limits);

// The orientation that EXIF data (beginning with the TIFF header) tell: 1 to 8, and 1 if they tell
// none or are damaged, since a picture is worth more than its notes.
int exif_orientation(std::string_view tiff);

// 5 to 8 exchange width and height.
ImageSize upright_size(const ImageSize& size, int orientation);
Image upright(Image image, int orientation);

// The structure of a JPEG file, walked without decoding anything.
struct JpegOutline {
  ImageSize size;       // as stored, not turned
  int components = 0;   // 1 gray, 3 color, 4 CMYK or YCCK
  int orientation = 1;  // of the first EXIF segment
  int64_t scans = 0;
};

// Refuses what is not whole: no frame, segments beyond the end, no end marker.
JpegOutline walk_jpeg(std::string_view bytes, const std::string& name);

}  // namespace rondo
