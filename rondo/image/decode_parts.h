// Shared by the decoders. Internal to decode*.cpp and the contact sheet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rondo/image/decode.h"

namespace rondo {

// Throws Error{bad_input} about the file `name`.
[[noreturn]] void refuse_image(const std::string& name, const std::string& what);

// Rejects a size that is empty or exceeds the limits.
void check_image_size(const ImageSize& size, const std::string& name, const DecodeLimits& limits);

// The orientation in EXIF data (starting with the TIFF header): 1 to 8; 1 if there is none or the
// data are damaged, since bad metadata should not cost the image.
int exif_orientation(std::string_view tiff);

// Orientations 5 to 8 swap width and height.
ImageSize upright_size(const ImageSize& size, int orientation);
Image upright(Image image, int orientation);

// The structure of a JPEG file, parsed without decoding.
struct JpegOutline {
  ImageSize size;       // as stored, before rotation
  int components = 0;   // 1 gray, 3 color, 4 CMYK or YCCK
  int orientation = 1;  // of the first EXIF segment
  int64_t scans = 0;
};

// Rejects incomplete files: no frame, segments beyond the end, no end marker.
JpegOutline walk_jpeg(std::string_view bytes, const std::string& name);

}  // namespace rondo
