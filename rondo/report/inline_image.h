// Pictures of pixels inside a page or drawing: nothing is fetched.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rondo {

// RFC 4648, with padding.
std::string base64(std::string_view bytes);

// A PNG file as an element of an SVG drawing.
std::string svg_image(std::string_view png, double x, double y, int64_t width, int64_t height);

}  // namespace rondo
