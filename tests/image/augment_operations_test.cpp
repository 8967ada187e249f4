// Operations on colors and geometry against Pillow's results.
#include "rondo/image/augment_color.h"

#include <gtest/gtest.h>

#include <map>

#include "rondo/image/augment_geometry.h"
#include "rondo/image/augment_policy.h"
#include "tests/image/image_test_util.h"

namespace rondo {
namespace {

using testing::expect_same_image;
using testing::made_up_image;
using testing::pillow_cases;
using testing::PillowCase;

const std::map<std::string, Operation> kOperations = {
    {"auto_contrast", Operation::auto_contrast},
    {"equalize", Operation::equalize},
    {"invert", Operation::invert},
    {"rotate", Operation::rotate},
    {"posterize", Operation::posterize},
    {"solarize", Operation::solarize},
    {"solarize_add", Operation::solarize_add},
    {"colour", Operation::color},
    {"contrast", Operation::contrast},
    {"brightness", Operation::brightness},
    {"sharpness", Operation::sharpness},
    {"shear_x", Operation::shear_x},
    {"shear_y", Operation::shear_y},
    {"translate_x", Operation::translate_x},
    {"translate_y", Operation::translate_y},
};

Sampling sampling_of(const nlohmann::json& args) {
  const std::string name = args.value("sampling", "nearest");
  return name == "bicubic"    ? Sampling::bicubic
         : name == "bilinear" ? Sampling::bilinear
                              : Sampling::nearest;
}

class PillowOperation : public ::testing::TestWithParam<std::string> {};

TEST_P(PillowOperation, IsEqual) {
  for (const PillowCase& one : pillow_cases({GetParam()})) {
    Image image = one.input;
    apply_operation(image, kOperations.at(one.op), one.args.value("value", 0.0),
                    sampling_of(one.args), {124, 116, 104});
    expect_same_image(image, one.output, one.text());
  }
}

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const auto& [name, operation] : kOperations) {
    names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, PillowOperation, ::testing::ValuesIn(operation_names()),
                         [](const auto& one) { return one.param; });

TEST(ColorOperations, ExactSmallCases) {
  Image image(2, 1);
  image.pixels = {0, 127, 128, 255, 64, 10};
  Image changed = image;
  invert(changed);
  EXPECT_EQ(changed.pixels, (std::vector<uint8_t>{255, 128, 127, 0, 191, 245}));
  changed = image;
  posterize(changed, 1);
  EXPECT_EQ(changed.pixels, (std::vector<uint8_t>{0, 0, 128, 128, 0, 0}));
  changed = image;
  posterize(changed, 8);
  EXPECT_EQ(changed.pixels, image.pixels);
  changed = image;
  solarize(changed, 128);
  EXPECT_EQ(changed.pixels, (std::vector<uint8_t>{0, 127, 127, 0, 64, 10}));
  changed = image;
  solarize_add(changed, 200, 128);
  EXPECT_EQ(changed.pixels, (std::vector<uint8_t>{200, 255, 128, 255, 255, 210}));
  changed = image;
  adjust_brightness(changed, 0.5);
  EXPECT_EQ(changed.pixels, (std::vector<uint8_t>{0, 63, 64, 127, 32, 5}));
}

TEST(Geometry, MirrorAndPaddedCrops) {
  const Image image = made_up_image(5, 4, 1);
  Image twice = image;
  mirror(twice);
  EXPECT_NE(twice.pixels, image.pixels);
  for (int64_t y = 0; y < 4; ++y) {
    for (int64_t x = 0; x < 5; ++x) {
      EXPECT_EQ(twice.row(y)[x * 3 + 1], image.row(y)[(4 - x) * 3 + 1]);
    }
  }
  mirror(twice);
  expect_same_image(twice, image, "mirrored twice");
  const Color fill = {1, 2, 3};
  for (int64_t left = -7; left <= 7; ++left) {
    for (int64_t top = -7; top <= 7; ++top) {
      const Image part = crop_padded(image, left, top, 6, 3, fill);
      for (int64_t y = 0; y < 3; ++y) {
        for (int64_t x = 0; x < 6; ++x) {
          const bool inside = x + left >= 0 && x + left < 5 && y + top >= 0 && y + top < 4;
          EXPECT_EQ(part.row(y)[x * 3 + 2],
                    inside ? image.row(y + top)[(x + left) * 3 + 2] : fill[2]);
        }
      }
    }
  }
}

TEST(Geometry, OnePixelAndWildMatrices) {
  const Image dot = made_up_image(1, 1, 1);
  for (const Sampling sampling : {Sampling::nearest, Sampling::bilinear, Sampling::bicubic}) {
    expect_same_image(affine(dot, {1, 0, 0, 0, 1, 0}, sampling, {}), dot, "identity");
    (void)rotate(dot, 33, sampling, {});
    const Image far = affine(made_up_image(9, 9, 2), {1, 0, 1e9, 0, 1, -1e9}, sampling, {7, 8, 9});
    EXPECT_EQ(far.pixels[0], 7);
    EXPECT_EQ(far.pixels[80 * 3 + 2], 9);
  }
}

}  // namespace
}  // namespace rondo
