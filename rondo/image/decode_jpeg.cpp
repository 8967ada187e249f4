// JPEG with libjpeg-turbo's TurboJPEG interface, which hides libjpeg's longjmp.
#include <fmt/core.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "rondo/image/decode_parts.h"

namespace rondo {
namespace {

constexpr int64_t kMaxJpegScans = 500;  // TurboJPEG's own limit; typical encoders write about ten

using TurboHandle = std::unique_ptr<void, int (*)(tjhandle)>;

enum JpegMarker : uint8_t {
  kStandalone01 = 0x01,
  kFrameFirst = 0xC0,
  kHuffman = 0xC4,  // in the range of frame markers, but not one
  kReserved = 0xC8,
  kArithmetic = 0xCC,
  kFrameLast = 0xCF,
  kRestartFirst = 0xD0,
  kRestartLast = 0xD7,
  kEndOfImage = 0xD9,
  kStartOfScan = 0xDA,
  kExif = 0xE1,
};

class JpegWalker {
 public:
  JpegWalker(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  JpegOutline walk() {
    while (true) {
      const uint8_t marker = next_marker();
      if (marker == kEndOfImage) {
        if (outline_.components == 0 || outline_.scans == 0) {
          refuse_image(name_, "the JPEG file contains no image");
        }
        return outline_;
      }
      const bool restart = marker >= kRestartFirst && marker <= kRestartLast;
      if (!restart && marker != kStandalone01) {
        segment(marker);
      }
    }
  }

 private:
  uint8_t byte(size_t at) const {
    if (at >= bytes_.size()) {
      refuse_image(name_, "the JPEG file is truncated");
    }
    return static_cast<uint8_t>(bytes_[at]);
  }
  int u16(size_t at) const { return byte(at) << 8 | byte(at + 1); }

  // The code of the next marker; anything before it (coded pixels or garbage) is skipped.
  uint8_t next_marker() {
    while (true) {
      const void* found = at_ < bytes_.size()
                              ? std::memchr(bytes_.data() + at_, 0xFF, bytes_.size() - at_)
                              : nullptr;
      if (found == nullptr) {
        refuse_image(name_, "the JPEG file is truncated");
      }
      at_ = static_cast<size_t>(static_cast<const char*>(found) - bytes_.data()) + 1;
      while (byte(at_) == 0xFF) {  // fill bytes
        ++at_;
      }
      if (byte(at_) != 0) {  // 0: an escaped FF in the coded data
        return byte(at_++);
      }
    }
  }

  void segment(uint8_t marker) {
    const auto length = static_cast<size_t>(u16(at_));
    if (length < 2) {
      refuse_image(name_, "damaged JPEG data: a segment is shorter than its length field");
    }
    byte(at_ + length - 1);  // must exist
    const size_t body = at_ + 2;
    const bool frame = marker >= kFrameFirst && marker <= kFrameLast && marker != kHuffman &&
                       marker != kReserved && marker != kArithmetic;
    if (frame && outline_.components == 0) {
      if (length < 8) {
        refuse_image(name_, "damaged JPEG data: the frame header is too short");
      }
      outline_.size = {u16(body + 3), u16(body + 1)};
      outline_.components = byte(body + 5);
    } else if (marker == kStartOfScan) {
      ++outline_.scans;
    } else if (marker == kExif && !exif_seen_) {
      const std::string_view data = bytes_.substr(body, length - 2);
      constexpr std::string_view kSignature("Exif\0\0", 6);
      if (data.substr(0, kSignature.size()) == kSignature) {
        exif_seen_ = true;
        outline_.orientation = exif_orientation(data.substr(kSignature.size()));
      }
    }
    at_ += length;
  }

  std::string_view bytes_;
  const std::string& name_;
  size_t at_ = 2;  // after the start marker
  bool exif_seen_ = false;
  JpegOutline outline_;
};

// The smallest size libjpeg-turbo can decode to directly whose shorter side is at least `min_side`.
// Six and seven eighths are excluded: they cost more than the full size.
ImageSize scaled_size(const ImageSize& size, int64_t min_side) {
  if (min_side <= 0) {
    return size;
  }
  int count = 0;
  const tjscalingfactor* factors = ::tjGetScalingFactors(&count);
  ImageSize best = size;
  for (int i = 0; i < count; ++i) {
    if (factors[i].num * 8 > factors[i].denom * 5) {
      continue;
    }
    const ImageSize scaled{TJSCALED(size.width, factors[i]), TJSCALED(size.height, factors[i])};
    if (std::min(scaled.width, scaled.height) >= min_side && scaled.width < best.width) {
      best = scaled;
    }
  }
  return best;
}

// Adobe's CMYK is stored inverted: 255 is no ink. Computed as in Pillow.
Image rgb_of_cmyk(const ImageSize& size, const std::vector<uint8_t>& cmyk) {
  Image image(size.width, size.height);
  const uint8_t* from = cmyk.data();
  for (size_t i = 0; i < image.pixels.size(); i += 3, from += 4) {
    const int paper = from[3];  // 255 - black
    for (size_t c = 0; c < 3; ++c) {
      const int ink = (255 - from[c]) * paper + 128;
      image.pixels[i + c] = static_cast<uint8_t>(paper - (((ink >> 8) + ink) >> 8));
    }
  }
  return image;
}

// libjpeg warnings that do not affect the pixels.
bool harmless_warning(std::string_view text) {
  for (const char* part : {"extraneous bytes before marker", "Invalid SOS parameters",
                           "unknown JFIF revision", "Adobe color transform", "ICC"}) {
    if (text.find(part) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

void check_turbo_header(tjhandle handle, std::string_view bytes, const ImageSize& size,
                        const std::string& name) {
  int width = -1;
  int height = -1;
  int subsampling = -1;
  int colors = -1;
  const int failed =
      ::tjDecompressHeader3(handle, reinterpret_cast<const unsigned char*>(bytes.data()),
                            bytes.size(), &width, &height, &subsampling, &colors);
  // Also fails for unusual subsampling, which the decoder itself handles; the size is set then.
  if (failed != 0 && ::tjGetErrorCode(handle) != TJERR_WARNING && width < 1) {
    refuse_image(name, fmt::format("damaged JPEG data ({})", ::tjGetErrorStr2(handle)));
  }
  if (width != size.width || height != size.height) {
    refuse_image(name, "damaged JPEG data: two sizes for one image");
  }
}

}  // namespace

JpegOutline walk_jpeg(std::string_view bytes, const std::string& name) {
  return JpegWalker(bytes, name).walk();
}

Image decode_jpeg(std::string_view bytes, const std::string& name, const EnoughSide& enough,
                  const DecodeLimits& limits) {
  const JpegOutline outline = walk_jpeg(bytes, name);
  check_image_size(outline.size, name, limits);
  if (outline.scans > kMaxJpegScans) {
    refuse_image(name, fmt::format("the JPEG file has {} scans; expected at most {}", outline.scans,
                                   kMaxJpegScans));
  }
  const TurboHandle handle(::tjInitDecompress(), &::tjDestroy);
  if (!handle) {
    throw std::bad_alloc();
  }
  check_turbo_header(handle.get(), bytes, outline.size, name);
  const int64_t min_side = enough(upright_size(outline.size, outline.orientation));
  const ImageSize size = scaled_size(outline.size, min_side);
  const bool cmyk = outline.components == 4;
  std::vector<uint8_t> pixels(static_cast<size_t>(size.width * size.height) * (cmyk ? 4 : 3));
  const int failed = ::tjDecompress2(
      handle.get(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
      pixels.data(), static_cast<int>(size.width), 0, static_cast<int>(size.height),
      cmyk ? TJPF_CMYK : TJPF_RGB, TJFLAG_LIMITSCANS);
  if (failed != 0) {
    const char* reason = ::tjGetErrorStr2(handle.get());
    if (::tjGetErrorCode(handle.get()) != TJERR_WARNING || !harmless_warning(reason)) {
      refuse_image(name, fmt::format("damaged JPEG data ({})", reason));
    }
  }
  if (cmyk) {
    return upright(rgb_of_cmyk(size, pixels), outline.orientation);
  }
  Image image;
  image.width = size.width;
  image.height = size.height;
  image.pixels = std::move(pixels);
  return upright(std::move(image), outline.orientation);
}

}  // namespace rondo
