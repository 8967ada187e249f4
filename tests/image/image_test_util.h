// Shared by the tests of rondo/image: generated pictures, Pillow's results, encoders and archives
// that do not depend on the code under test.
#pragma once

#include <gtest/gtest.h>
#include <turbojpeg.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rondo/base/random.h"
#include "rondo/base/safetensors.h"
#include "rondo/image/image.h"
#include "tests/base/base_test_util.h"

namespace rondo::testing {

// Waves with some noise.
inline Image made_up_image(int64_t width, int64_t height, uint64_t seed) {
  CounterRandom random(seed, "made up image");
  Image image(width, height);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double wave =
            std::sin(0.3 * static_cast<double>(x + c) + 0.2 * static_cast<double>(y));
        image.row(y)[x * 3 + c] =
            static_cast<uint8_t>(128 + 100 * wave + static_cast<double>(random.below(20)));
      }
    }
  }
  return image;
}

inline void expect_same_image(const Image& got, const Image& expected, const std::string& what) {
  ASSERT_EQ(got.width, expected.width) << what;
  ASSERT_EQ(got.height, expected.height) << what;
  ASSERT_EQ(got.pixels.size(), expected.pixels.size()) << what;
  int64_t different = 0;
  int largest = 0;
  for (size_t i = 0; i < got.pixels.size(); ++i) {
    const int difference = std::abs(got.pixels[i] - expected.pixels[i]);
    different += difference > 0 ? 1 : 0;
    largest = std::max(largest, difference);
  }
  EXPECT_EQ(different, 0) << what << ": of " << got.pixels.size() << " values, by at most "
                          << largest;
}

// The mean of the differences, in 255ths.
inline double mean_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    sum += std::abs(a.pixels[i] - b.pixels[i]);
  }
  return sum / static_cast<double>(a.pixels.size());
}

// One line of tests/fixtures/make_image_cases.py.
struct PillowCase {
  std::string op;
  nlohmann::json args;
  Image input;        // for images
  std::string bytes;  // for files
  Image output;
  std::string text() const { return op + " " + args.dump(); }
};

// All cases of the given operations.
inline std::vector<PillowCase> pillow_cases(const std::vector<std::string>& ops) {
  const SafetensorsFile file =
      SafetensorsFile::open(std::string(RONDO_FIXTURES) + "/image_cases.safetensors");
  const auto bytes_of = [&](const std::string& name) {
    const TensorEntry* entry = file.find(name);
    return std::string(reinterpret_cast<const char*>(file.bytes(*entry)),
                       static_cast<size_t>(entry->elements()));
  };
  const auto image_of = [&](const std::string& name) {
    const TensorEntry* entry = file.find(name);
    Image image(entry->shape[1], entry->shape[0]);
    std::memcpy(image.pixels.data(), file.bytes(*entry), image.pixels.size());
    return image;
  };
  std::vector<PillowCase> cases;
  for (const nlohmann::json& one : nlohmann::json::parse(file.metadata().at("cases"))) {
    const std::string op = one["op"];
    if (std::find(ops.begin(), ops.end(), op) == ops.end()) {
      continue;
    }
    PillowCase add;
    add.op = op;
    add.args = one["args"];
    if (op == "decode") {
      add.bytes = bytes_of(one["input"]);
    } else {
      add.input = image_of(one["input"]);
    }
    add.output = image_of(one["output"]);
    cases.push_back(add);
  }
  EXPECT_FALSE(cases.empty());
  return cases;
}

struct JpegStyle {
  int quality = 90;
  int subsampling = TJSAMP_420;
  bool progressive = false;
};

inline std::string jpeg_of(const Image& image, const JpegStyle& style = {}) {
  const tjhandle handle = ::tjInitCompress();
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  EXPECT_EQ(
      ::tjCompress2(handle, image.pixels.data(), static_cast<int>(image.width), 0,
                    static_cast<int>(image.height), TJPF_RGB, &buffer, &size, style.subsampling,
                    style.quality, style.progressive ? TJFLAG_PROGRESSIVE : 0),
      0);
  std::string bytes(reinterpret_cast<const char*>(buffer), size);
  ::tjFree(buffer);
  ::tjDestroy(handle);
  return bytes;
}

inline std::string big_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) {
    text.push_back(static_cast<char>(value >> (8 * i)));
  }
  return text;
}

// A PNG file assembled by hand: chunks with checksums, and rows compressed with zlib.
inline std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const uLong sum =
      ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(data.size(), 4) + body + big_endian(sum, 4);
}

inline std::string zlib_of(const std::string& data) {
  uLongf size = ::compressBound(data.size());
  std::string out(size, '\0');
  EXPECT_EQ(::compress(reinterpret_cast<Bytef*>(out.data()), &size,
                       reinterpret_cast<const Bytef*>(data.data()), data.size()),
            Z_OK);
  out.resize(size);
  return out;
}

// `rows` is what zlib compresses: each row preceded by its filter byte. `between` is put before the
// pixels.
inline std::string png_of(uint32_t width, uint32_t height, int depth, int color,
                          const std::string& rows, const std::string& between = "",
                          int interlace = 0) {
  std::string header = big_endian(width, 4) + big_endian(height, 4);
  for (const int byte : {depth, color, 0, 0, interlace}) {
    header.push_back(static_cast<char>(byte));
  }
  return "\x89PNG\r\n\x1A\n" + png_chunk("IHDR", header) + between +
         png_chunk("IDAT", zlib_of(rows)) + png_chunk("IEND", "");
}

// One member of a tar archive in the ustar format, with a correct checksum.
inline std::string tar_member(const std::string& name, const std::string& data, char type = '0') {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  char size[16];
  (void)std::snprintf(size, sizeof(size), "%011zo", data.size());
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, size);
  put(148, "        ");
  header[156] = type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : header) {
    sum += static_cast<unsigned char>(c);
  }
  char text[8];
  (void)std::snprintf(text, sizeof(text), "%06o", sum);
  put(148, std::string(text, 7) + " ");
  return header + data + std::string((512 - data.size() % 512) % 512, '\0');
}

inline std::string tar_end() { return std::string(1024, '\0'); }

inline std::string idx_of(const std::vector<uint32_t>& shape, const std::string& values) {
  std::string text("\0\0\x08", 3);
  text.push_back(static_cast<char>(shape.size()));
  for (const uint32_t extent : shape) {
    text += big_endian(extent, 4);
  }
  return text + values;
}

}  // namespace rondo::testing
