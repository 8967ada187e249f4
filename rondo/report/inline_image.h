// Embedded bitmaps in a page or drawing, so that nothing needs to be fetched.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rondo {

// RFC 4648, with padding.
std::string base64(std::string_view bytes);

// A PNG file as an SVG element.
std::string svg_image(std::string_view png, double x, double y, int64_t width, int64_t height);

}  // namespace rondo
