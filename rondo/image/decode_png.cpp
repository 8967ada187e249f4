// PNG with libpng. It reports errors by longjmp: every setjmp is in a separate function whose
// locals need no destructor, as are the callbacks in between.
#include <fmt/core.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>

#include "rondo/image/decode_parts.h"

namespace rondo {
namespace {

// Chunks we do not use and need not decompress: color management, text, transparency.
constexpr char kIgnoredChunks[] =
    "bKGD\0cHRM\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0"
    "tRNS\0zTXt\0";
constexpr int kIgnoredChunkCount = sizeof(kIgnoredChunks) / 5;

constexpr png_alloc_size_t kMaxChunkBytes = 8'000'000;
constexpr png_uint_32 kMaxKeptChunks = 100;

// One file being read, including everything the functions under setjmp use.
struct PngSession {
  const uint8_t* data = nullptr;
  size_t size = 0;
  size_t at = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  char reason[160] = "";

  PngSession() = default;
  PngSession(const PngSession&) = delete;
  PngSession& operator=(const PngSession&) = delete;
  ~PngSession() { ::png_destroy_read_struct(&png, &info, nullptr); }
};

extern "C" {

[[noreturn]] static void rondo_png_failed(png_structp png, png_const_charp message) {
  auto* session = static_cast<PngSession*>(::png_get_error_ptr(png));
  std::strncpy(session->reason, message, sizeof(session->reason) - 1);
  ::png_longjmp(png, 1);
}

static void rondo_png_warned(png_structp /*png*/, png_const_charp /*message*/) {}

static void rondo_png_read(png_structp png, png_bytep out, size_t count) {
  auto* session = static_cast<PngSession*>(::png_get_io_ptr(png));
  if (count > session->size - session->at) {
    ::png_error(png, "the file is truncated");
  }
  std::memcpy(out, session->data + session->at, count);
  session->at += count;
}

}  // extern "C"

void open_png(PngSession& session, std::string_view bytes, const DecodeLimits& limits) {
  session.data = reinterpret_cast<const uint8_t*>(bytes.data());
  session.size = bytes.size();
  session.png = ::png_create_read_struct(PNG_LIBPNG_VER_STRING, &session, &rondo_png_failed,
                                         &rondo_png_warned);
  if (session.png == nullptr) {
    throw std::bad_alloc();
  }
  session.info = ::png_create_info_struct(session.png);
  if (session.info == nullptr) {
    throw std::bad_alloc();
  }
  ::png_set_read_fn(session.png, &session, &rondo_png_read);
  ::png_set_user_limits(session.png, static_cast<png_uint_32>(limits.side),
                        static_cast<png_uint_32>(limits.side));
  ::png_set_chunk_malloc_max(session.png, kMaxChunkBytes);
  ::png_set_chunk_cache_max(session.png, kMaxKeptChunks);
  ::png_set_benign_errors(session.png, 1);
}

// False if libpng failed, with the reason in session.reason.
bool start_png(PngSession& session) {
  if (setjmp(png_jmpbuf(session.png)) != 0) {
    return false;
  }
  ::png_set_keep_unknown_chunks(session.png, PNG_HANDLE_CHUNK_NEVER,
                                reinterpret_cast<png_const_bytep>(kIgnoredChunks),
                                kIgnoredChunkCount);
  ::png_read_info(session.png, session.info);
  ::png_set_strip_16(session.png);
  ::png_set_palette_to_rgb(session.png);
  ::png_set_expand_gray_1_2_4_to_8(session.png);
  ::png_set_gray_to_rgb(session.png);
  ::png_set_strip_alpha(session.png);
  (void)::png_set_interlace_handling(session.png);
  ::png_read_update_info(session.png, session.info);
  return true;
}

// Reads all rows, once per pass of an interlaced file, then the rest up to the end chunk.
bool finish_png(PngSession& session, uint8_t* pixels, size_t row_bytes, int64_t rows) {
  if (setjmp(png_jmpbuf(session.png)) != 0) {
    return false;
  }
  const int passes = ::png_get_interlace_type(session.png, session.info) == PNG_INTERLACE_NONE
                         ? 1
                         : PNG_INTERLACE_ADAM7_PASSES;
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < rows; ++y) {
      ::png_read_row(session.png, pixels + static_cast<size_t>(y) * row_bytes, nullptr);
    }
  }
  ::png_read_end(session.png, session.info);
  return true;
}

// The size in the header, which must be the first chunk.
ImageSize png_header_size(std::string_view bytes, const std::string& name) {
  constexpr size_t kHeaderEnd = 33;
  if (bytes.size() < kHeaderEnd) {
    refuse_image(name, "the PNG file is truncated");
  }
  if (bytes.substr(12, 4) != "IHDR") {
    refuse_image(name, "damaged PNG data: it does not start with a header");
  }
  const auto* at = reinterpret_cast<png_const_bytep>(bytes.data());
  return {static_cast<int64_t>(png_get_uint_32(at + 16)),
          static_cast<int64_t>(png_get_uint_32(at + 20))};
}

int png_orientation(const PngSession& session) {
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (::png_get_eXIf_1(session.png, session.info, &size, &exif) == 0 || exif == nullptr) {
    return 1;
  }
  return exif_orientation({reinterpret_cast<const char*>(exif), size});
}

}  // namespace

Image decode_png(std::string_view bytes, const std::string& name, const EnoughSide& enough,
                 const DecodeLimits& limits) {
  const ImageSize size = png_header_size(bytes, name);
  check_image_size(size, name, limits);
  PngSession session;
  open_png(session, bytes, limits);
  if (!start_png(session)) {
    refuse_image(name, fmt::format("damaged PNG data ({})", session.reason));
  }
  const size_t row_bytes = static_cast<size_t>(size.width) * 3;
  if (::png_get_rowbytes(session.png, session.info) != row_bytes ||
      ::png_get_image_height(session.png, session.info) != size.height) {
    refuse_image(name, "damaged PNG data: two sizes for one image");
  }
  Image image(size.width, size.height);
  if (!finish_png(session, image.pixels.data(), row_bytes, size.height)) {
    refuse_image(name, fmt::format("damaged PNG data ({})", session.reason));
  }
  // The orientation may be at the end of the file, so it is known only now.
  const int orientation = png_orientation(session);
  (void)enough(upright_size(size, orientation));
  return upright(std::move(image), orientation);
}

}  // namespace rondo
