// Decoding against Pillow's results, every kind of PNG against its definition, scaled decoding, and
// files that are truncated, damaged, hostile or not images.
#include "rondo/image/decode.h"

#include <gtest/gtest.h>

#include "rondo/image/contact_sheet.h"
#include "rondo/image/decode_parts.h"
#include "tests/image/image_test_util.h"

namespace rondo {
namespace {

using testing::big_endian;
using testing::error_of;
using testing::expect_same_image;
using testing::jpeg_of;
using testing::JpegStyle;
using testing::made_up_image;
using testing::mean_difference;
using testing::pillow_cases;
using testing::PillowCase;
using testing::png_chunk;
using testing::png_of;

// Rejected as a bad file, with its name.
void expect_refused(const std::string& bytes, const std::string& what,
                    const std::string& reason = "") {
  const Error error = error_of([&] { decode_image(bytes, "some/file.x"); });
  EXPECT_EQ(error.code(), ExitCode::bad_input) << what;
  EXPECT_EQ(error.message().rfind("some/file.x: ", 0), 0U) << error.what();
  EXPECT_NE(error.message().find(reason), std::string::npos) << what << ": " << error.what();
}

TEST(Decode, EqualsPillow) {
  for (const PillowCase& one : pillow_cases({"decode"})) {
    expect_same_image(decode_image(one.bytes, "file"), one.output, one.text());
  }
}

TEST(Decode, JpegStaysNearTheOriginal) {
  const Image image = made_up_image(50, 37, 1);
  for (const int subsampling : {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_411}) {
    for (const bool progressive : {false, true}) {
      const std::string bytes = jpeg_of(image, {95, subsampling, progressive});
      const Image got = decode_image(bytes, "file");
      EXPECT_EQ(got.width, 50);
      EXPECT_EQ(got.height, 37);
      EXPECT_LT(mean_difference(got, image), 8.0) << subsampling;
      expect_same_image(decode_image(bytes + "trailing garbage \xFF\xD8\xFF", "file"), got,
                        "garbage");
    }
  }
}

TEST(Decode, ScaledToTheSmallestEighthThatIsEnough) {
  const std::string bytes = jpeg_of(made_up_image(160, 240, 1));
  const auto size_for = [&](int64_t min_side) {
    ImageSize asked;
    const Image image = decode_image(bytes, "file", [&](const ImageSize& size) {
      asked = size;
      return min_side;
    });
    EXPECT_EQ(asked.width, 160);
    EXPECT_EQ(asked.height, 240);
    return std::make_pair(image.width, image.height);
  };
  using Size = std::pair<int64_t, int64_t>;
  EXPECT_EQ(size_for(0), Size(160, 240));
  EXPECT_EQ(size_for(1000), Size(160, 240));
  EXPECT_EQ(size_for(160), Size(160, 240));
  EXPECT_EQ(size_for(101), Size(160, 240));
  EXPECT_EQ(size_for(100), Size(100, 150));
  EXPECT_EQ(size_for(80), Size(80, 120));
  EXPECT_EQ(size_for(61), Size(80, 120));
  EXPECT_EQ(size_for(20), Size(20, 30));
  EXPECT_EQ(size_for(1), Size(20, 30));
}

// Sixteen bits keep the high byte; few bits are stretched to all of 0 to 255.
TEST(Decode, PngOfEveryDepth) {
  const Image deep = decode_image(png_of(2, 1, 16, 2,
                                         std::string("\0\x01\xFF\x80\x7F\xFF\x00"
                                                     "\x10\x20\x30\x40\x50\x60",
                                                     13)),
                                  "file");
  EXPECT_EQ(deep.pixels, (std::vector<uint8_t>{0x01, 0x80, 0xFF, 0x10, 0x30, 0x50}));
  const Image deep_gray = decode_image(png_of(1, 1, 16, 0, std::string("\0\xAB\xCD", 3)), "file");
  EXPECT_EQ(deep_gray.pixels, (std::vector<uint8_t>{0xAB, 0xAB, 0xAB}));
  const Image deep_alpha = decode_image(
      png_of(1, 1, 16, 6, std::string("\0\xAB\x01\xCD\x02\xEF\x03\x00\x00", 9)), "file");
  EXPECT_EQ(deep_alpha.pixels, (std::vector<uint8_t>{0xAB, 0xCD, 0xEF}));
  const Image bits = decode_image(png_of(3, 1, 1, 0, std::string("\0\xA0", 2)), "file");
  EXPECT_EQ(bits.pixels, (std::vector<uint8_t>{255, 255, 255, 0, 0, 0, 255, 255, 255}));
  const Image two = decode_image(png_of(4, 1, 2, 0, std::string("\0\x1B", 2)), "file");
  EXPECT_EQ(two.pixels[3], 85);
  EXPECT_EQ(two.pixels[6], 170);
  const Image four = decode_image(png_of(2, 1, 4, 0, std::string("\0\x2F", 2)), "file");
  EXPECT_EQ(four.pixels[0], 34);
  EXPECT_EQ(four.pixels[3], 255);
  const std::string palette = png_chunk("PLTE", std::string("\x01\x02\x03\xF0\xF1\xF2", 6));
  const Image indexed = decode_image(png_of(2, 1, 8, 3, std::string("\0\x01\x00", 3),
                                            palette + png_chunk("tRNS", std::string("\x00", 1))),
                                     "file");
  EXPECT_EQ(indexed.pixels, (std::vector<uint8_t>{0xF0, 0xF1, 0xF2, 1, 2, 3}));
}

TEST(Decode, PngInterlaced) {
  // Two by two: pass 1 has (0,0), pass 6 (1,0), pass 7 the second row.
  const std::string rows("\0\x0A\0\x14\0\x1E\x28", 7);
  const Image image = decode_image(png_of(2, 2, 8, 0, rows, "", 1), "file");
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40}));
}

TEST(Decode, OwnPngRoundTrip) {
  for (const auto& [width, height] : {std::pair(1, 1), {3, 50}, {64, 64}}) {
    const Image image = made_up_image(width, height, 7);
    expect_same_image(decode_image(encode_png(image) + "garbage", "file"), image, "png");
  }
}

TEST(Decode, EveryTruncationIsRefused) {
  const Image image = made_up_image(40, 30, 3);
  const std::vector<std::string> files = {jpeg_of(image), jpeg_of(image, {90, TJSAMP_444, true}),
                                          encode_png(image)};
  for (const std::string& whole : files) {
    for (size_t size = 0; size < whole.size(); size += size < 700 ? 1 : 97) {
      expect_refused(whole.substr(0, size), std::to_string(size));
    }
    expect_refused(whole.substr(0, whole.size() - 1), "all but one byte");
  }
}

// Whatever byte is changed, the result is an image or an Error.
TEST(Decode, DamageIsAnErrorAtWorst) {
  const Image image = made_up_image(40, 30, 4);
  CounterRandom random(1, "flips");
  const std::vector<std::string> files = {jpeg_of(image), jpeg_of(image, {90, TJSAMP_420, true}),
                                          encode_png(image)};
  for (const std::string& whole : files) {
    int refused = 0;
    for (int i = 0; i < 400; ++i) {
      std::string bytes = whole;
      for (uint64_t flips = 1 + random.below(4); flips > 0; --flips) {
        bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
      }
      try {
        (void)decode_image(bytes, "file", 0, {4096, 1 << 20});
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_input);
        ++refused;
      }
    }
    EXPECT_GT(refused, 50);
  }
}

TEST(Decode, BombsAreRefusedBeforeTheyAreUnpacked) {
  const std::string row(1 + 3, '\0');
  expect_refused(png_of(16385, 1, 8, 2, row), "wide", "16,384 per side");
  expect_refused(png_of(16000, 16000, 8, 2, row), "large", "16,000 x 16,000");
  expect_refused(png_of(0xFFFFFFFF, 0x7FFFFFFF, 8, 2, row), "largest");
  expect_refused(png_of(0, 5, 8, 2, row), "empty", "no pixels");
  // A profile that unpacks to 100 MB: not unpacked, since we have no use for it.
  const std::string bomb = testing::zlib_of(std::string(100'000'000, 'x'));
  const Image image = decode_image(png_of(1, 1, 8, 2, std::string("\0\x01\x02\x03", 4),
                                          png_chunk("iCCP", std::string("p\0\0", 3) + bomb) +
                                              png_chunk("zTXt", std::string("t\0\0", 3) + bomb)),
                                   "file");
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{1, 2, 3}));
  // JPEG: another size put into the frame header.
  std::string jpeg = jpeg_of(made_up_image(16, 16, 1));
  const size_t frame = jpeg.find("\xFF\xC0");
  jpeg.replace(frame + 5, 4, "\xFF\xFF\xFF\xFF");
  expect_refused(jpeg, "jpeg", "65,535 x 65,535");
  jpeg.replace(frame + 5, 4, std::string("\0\0\0\x10", 4));
  expect_refused(jpeg, "jpeg without lines", "no pixels");
  expect_refused(png_of(100, 100, 8, 2, row), "too few rows");
  const Error limited = error_of([&] {
    decode_image(jpeg_of(made_up_image(64, 64, 1)), "file", 0, {16384, 64 * 63});
  });
  EXPECT_EQ(limited.code(), ExitCode::bad_input);
}

// A progressive file whose last scan is repeated: each scan costs a pass over the whole image.
TEST(Decode, ManyScansAreRefused) {
  const std::string whole = jpeg_of(made_up_image(16, 16, 1), {90, TJSAMP_444, true});
  const size_t scan = whole.rfind("\xFF\xDA");
  const std::string last = whole.substr(scan, whole.size() - 2 - scan);
  std::string many = whole.substr(0, whole.size() - 2);
  for (int i = 0; i < 2000; ++i) {
    many += last;
  }
  expect_refused(many + "\xFF\xD9", "scans", "scans; expected at most 500");
}

TEST(Decode, OtherFilesAreNoImages) {
  expect_refused("", "empty", "empty file");
  expect_refused("GIF89a and so on", "gif", "expected a JPEG or PNG");
  expect_refused("\xFF\xD8\xFF", "three bytes");
  expect_refused("\xFF\xD8\xFF\xD9", "start and end", "contains no image");
  expect_refused("\x89PNG\r\n\x1A\n", "signature only");
  expect_refused(std::string("\xFF\xD8\xFF\xE1\x00\x01", 6), "short segment", "shorter");
}

// The EXIF part alone: any bytes are fine.
TEST(Decode, ExifOrientation) {
  const auto tiff = [](bool little, int type, uint32_t value, int entries) {
    std::string text =
        little ? std::string("II*\0\x08\0\0\0", 8) : std::string("MM\0*\0\0\0\x08", 8);
    const auto number = [&](uint64_t v, int bytes) {
      std::string big = big_endian(v, bytes);
      return little ? std::string(big.rbegin(), big.rend()) : big;
    };
    text += number(static_cast<uint64_t>(entries), 2);
    text += number(0x0110, 2) + number(2, 2) + number(1, 4) + number(0, 4);
    text += number(0x0112, 2) + number(static_cast<uint64_t>(type), 2) + number(1, 4);
    return text + (type == 3 ? number(value, 2) + std::string(2, '\0') : number(value, 4));
  };
  for (const bool little : {false, true}) {
    for (uint32_t value = 1; value <= 8; ++value) {
      EXPECT_EQ(exif_orientation(tiff(little, 3, value, 2)), static_cast<int>(value));
      EXPECT_EQ(exif_orientation(tiff(little, 4, value, 2)), static_cast<int>(value));
    }
    EXPECT_EQ(exif_orientation(tiff(little, 3, 0, 2)), 1);
    EXPECT_EQ(exif_orientation(tiff(little, 3, 9, 2)), 1);
    EXPECT_EQ(exif_orientation(tiff(little, 2, 6, 2)), 1);
    EXPECT_EQ(exif_orientation(tiff(little, 3, 6, 1)), 1);
    const std::string whole = tiff(little, 3, 6, 60000);
    for (size_t size = 0; size < whole.size(); ++size) {
      (void)exif_orientation(whole.substr(0, size));
    }
  }
  EXPECT_EQ(exif_orientation(std::string("II*\0\xFF\xFF\xFF\xFF", 8)), 1);
}

TEST(Decode, NamesOfImages) {
  EXPECT_TRUE(is_image_name("a/b.JPEG"));
  EXPECT_TRUE(is_image_name("x.Jpg"));
  EXPECT_TRUE(is_image_name("x.png"));
  EXPECT_FALSE(is_image_name("x.gif"));
  EXPECT_FALSE(is_image_name("jpg"));
}

}  // namespace
}  // namespace rondo
