// Base64 and embedded images.
#include "rondo/report/inline_image.h"

#include <fmt/format.h>

namespace rondo {

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      const bool present = i + k <= bytes.size();
      text += present ? kDigits[bits >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

std::string svg_image(std::string_view png, double x, double y, int64_t width, int64_t height) {
  return fmt::format(
      "<image x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" "
      "href=\"data:image/png;base64,{}\"/>\n",
      x, y, width, height, base64(png));
}

}  // namespace rondo
