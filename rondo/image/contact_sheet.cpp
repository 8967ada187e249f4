// Writes PNG with libpng, under the same rule as reading: setjmp only in functions without
// destructors.
#include "rondo/image/contact_sheet.h"

#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <new>

#include "rondo/base/files.h"
#include "rondo/base/require.h"
#include "rondo/image/decode_parts.h"

namespace rondo {
namespace {

constexpr int64_t kSheetGap = 2;  // pixels around each image
constexpr uint8_t kSheetGrey = 128;
constexpr int kSheetCompression = 6;

struct PngWriting {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string out;

  PngWriting() = default;
  PngWriting(const PngWriting&) = delete;
  PngWriting& operator=(const PngWriting&) = delete;
  ~PngWriting() { ::png_destroy_write_struct(&png, &info); }
};

bool append_bytes(std::string& out, const uint8_t* data, size_t size) noexcept {
  try {
    out.append(reinterpret_cast<const char*>(data), size);
    return true;
  } catch (const std::bad_alloc&) {  // must not propagate through libpng's frames
    return false;
  }
}

extern "C" {

[[noreturn]] static void rondo_png_unwritten(png_structp png, png_const_charp /*message*/) {
  ::png_longjmp(png, 1);
}

static void rondo_png_heard(png_structp /*png*/, png_const_charp /*message*/) {}

static void rondo_png_write(png_structp png, png_bytep data, size_t size) {
  auto* writing = static_cast<PngWriting*>(::png_get_io_ptr(png));
  if (!append_bytes(writing->out, data, size)) {
    ::png_error(png, "out of memory");
  }
}

static void rondo_png_flush(png_structp /*png*/) {}

}  // extern "C"

bool write_png_rows(PngWriting& writing, const uint8_t* pixels, uint32_t width, uint32_t height) {
  if (setjmp(png_jmpbuf(writing.png)) != 0) {
    return false;
  }
  ::png_set_write_fn(writing.png, &writing, &rondo_png_write, &rondo_png_flush);
  ::png_set_IHDR(writing.png, writing.info, width, height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  ::png_set_compression_level(writing.png, kSheetCompression);
  ::png_write_info(writing.png, writing.info);
  for (uint32_t y = 0; y < height; ++y) {
    ::png_write_row(writing.png, pixels + size_t{3} * width * y);
  }
  ::png_write_end(writing.png, writing.info);
  return true;
}

}  // namespace

std::string encode_png(const Image& image) {
  require(image.width >= 1 && image.height >= 1, "PNG: expected at least 1 x 1 pixels, got {} x {}",
          image.width, image.height);
  PngWriting writing;
  writing.png = ::png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, &rondo_png_unwritten,
                                          &rondo_png_heard);
  if (writing.png != nullptr) {
    writing.info = ::png_create_info_struct(writing.png);
  }
  if (writing.info == nullptr ||
      !write_png_rows(writing, image.pixels.data(), static_cast<uint32_t>(image.width),
                      static_cast<uint32_t>(image.height))) {
    throw std::bad_alloc();  // the only way it can fail
  }
  return std::move(writing.out);
}

Image contact_sheet(const std::vector<Image>& images, int64_t columns) {
  require(!images.empty() && columns >= 1,
          "contact sheet: expected images in at least 1 column, got {} in {}", images.size(),
          columns);
  const auto count = static_cast<int64_t>(images.size());
  columns = std::min(columns, count);
  int64_t width = 0;
  int64_t height = 0;
  for (const Image& image : images) {
    width = std::max(width, image.width);
    height = std::max(height, image.height);
  }
  const int64_t rows = (count + columns - 1) / columns;
  Image sheet(columns * (width + kSheetGap) + kSheetGap, rows * (height + kSheetGap) + kSheetGap);
  std::fill(sheet.pixels.begin(), sheet.pixels.end(), kSheetGrey);
  for (int64_t i = 0; i < count; ++i) {
    const Image& image = images[static_cast<size_t>(i)];
    const int64_t left = i % columns * (width + kSheetGap) + kSheetGap;
    const int64_t top = i / columns * (height + kSheetGap) + kSheetGap;
    for (int64_t y = 0; y < image.height; ++y) {
      std::memcpy(sheet.row(top + y) + left * 3, image.row(y),
                  static_cast<size_t>(image.width) * 3);
    }
  }
  return sheet;
}

void write_contact_sheet(const std::vector<Image>& images, int64_t columns,
                         const std::string& path) {
  require(!images.empty() && columns >= 1,
          "contact sheet: expected images in at least 1 column, got {} in {}", images.size(),
          columns);
  int64_t width = 0;
  int64_t height = 0;
  for (const Image& image : images) {
    width = std::max(width, image.width + kSheetGap);
    height = std::max(height, image.height + kSheetGap);
  }
  const auto count = static_cast<int64_t>(images.size());
  const int64_t across = std::min(columns, count);
  check_image_size({across * width + kSheetGap, (count + across - 1) / across * height + kSheetGap},
                   path, {});
  write_file(path, encode_png(contact_sheet(images, columns)));
}

}  // namespace rondo
