// Resizing against Pillow's results, and against its definition on images one pixel wider or
// narrower than vectors.
#include "rondo/image/resize.h"

#include <gtest/gtest.h>

#include "rondo/image/augment.h"
#include "tests/image/image_test_util.h"

namespace rondo {
namespace {

using testing::expect_same_image;
using testing::made_up_image;
using testing::mean_difference;
using testing::pillow_cases;
using testing::PillowCase;

Filter filter_of(const nlohmann::json& args) {
  return args.at("filter") == "bicubic" ? Filter::bicubic : Filter::bilinear;
}

TEST(Resize, EqualsPillow) {
  for (const PillowCase& one : pillow_cases({"resize"})) {
    const nlohmann::json& box = one.args["box"];
    const Image got = resize(one.input, one.args["width"], one.args["height"], filter_of(one.args),
                             {box[0], box[1], box[2], box[3]});
    expect_same_image(got, one.output, one.text());
    EXPECT_LE(mean_difference(got, one.output), 1.0) << one.text();  // required by the issue
  }
}

TEST(Resize, CropFirstEqualsPillow) {
  for (const PillowCase& one : pillow_cases({"resize_crop"})) {
    const nlohmann::json& args = one.args;
    expect_same_image(resize_crop(one.input, args["left"], args["top"], args["crop"][0],
                                  args["crop"][1], args["width"], args["height"], Filter::bicubic),
                      one.output, one.text());
    const Image cut = crop(one.input, args["left"], args["top"], args["crop"][0], args["crop"][1]);
    expect_same_image(resize(cut, args["width"], args["height"], Filter::bicubic), one.output,
                      one.text());
  }
}

TEST(Resize, FitsTheMiddleAsTorchvision) {
  for (const PillowCase& one : pillow_cases({"fit"})) {
    expect_same_image(fit_middle(one.input, one.args["side"], one.args["ratio"], Filter::bicubic),
                      one.output, one.text());
  }
}

// A direct implementation of the definition in floating point: it differs by at most the roundings
// of the two passes.
double plain_weight(double x, Filter filter) {
  x = std::abs(x);
  if (filter == Filter::bilinear) {
    return std::max(0.0, 1.0 - x);
  }
  return x < 1 ? 1.5 * x * x * x - 2.5 * x * x + 1
               : (x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0.0);
}

std::vector<double> plain_axis(const std::vector<double>& in, int64_t outputs, Filter filter) {
  const double scale = static_cast<double>(in.size()) / static_cast<double>(outputs);
  const double spread = std::max(1.0, scale);
  std::vector<double> out;
  for (int64_t i = 0; i < outputs; ++i) {
    double sum = 0;
    double weights = 0;
    for (size_t x = 0; x < in.size(); ++x) {
      const double at = static_cast<double>(x) + 0.5 - (static_cast<double>(i) + 0.5) * scale;
      const double weight = plain_weight(at / spread, filter);
      sum += weight * in[x];
      weights += weight;
    }
    out.push_back(std::clamp(sum / weights, 0.0, 255.0));
  }
  return out;
}

TEST(Resize, FollowsTheDefinitionAtAllSizes) {
  for (const int64_t width : {1, 2, 7, 8, 9, 31}) {
    for (const int64_t outputs : {1, 3, 8, 17, 40}) {
      for (const Filter filter : {Filter::bilinear, Filter::bicubic}) {
        const int64_t height = (width * 5 + outputs) % 19 + 1;  // rows in bands of eight: any rest
        const Image image = made_up_image(width, height, static_cast<uint64_t>(width * outputs));
        const Image got = resize(image, outputs, height, filter);
        const Image turned = resize(image, width, outputs, filter);
        for (int64_t y = 0; y < height; ++y) {
          for (int c = 0; c < 3; ++c) {
            std::vector<double> row;
            for (int64_t x = 0; x < width; ++x) {
              row.push_back(image.row(y)[x * 3 + c]);
            }
            const std::vector<double> expected = plain_axis(row, outputs, filter);
            for (int64_t x = 0; x < outputs; ++x) {
              ASSERT_NEAR(got.row(y)[x * 3 + c], expected[static_cast<size_t>(x)], 0.51);
            }
          }
        }
        std::vector<double> column;
        for (int64_t y = 0; y < height; ++y) {
          column.push_back(image.row(y)[0]);
        }
        const std::vector<double> expected = plain_axis(column, outputs, filter);
        for (int64_t y = 0; y < outputs; ++y) {
          ASSERT_NEAR(turned.row(y)[0], expected[static_cast<size_t>(y)], 0.51);
        }
      }
    }
  }
}

TEST(Resize, SameSizeIsTheSameImage) {
  const Image image = made_up_image(13, 7, 1);
  expect_same_image(resize(image, 13, 7, Filter::bicubic), image, "whole");
  expect_same_image(resize_crop(image, 2, 1, 5, 4, 5, 4, Filter::bicubic), crop(image, 2, 1, 5, 4),
                    "part");
  expect_same_image(fit_middle(made_up_image(8, 8, 2), 8, 1.0, Filter::bicubic),
                    made_up_image(8, 8, 2), "middle");
}

// Of an extremely narrow image only the middle is resized, or the result would grow without bound.
TEST(Resize, ThinImagesStaySmall) {
  const Image fitted = fit_middle(made_up_image(1, 16384, 1), 224, 0.875, Filter::bicubic);
  EXPECT_EQ(fitted.width, 224);
  EXPECT_EQ(fitted.height, 224);
}

}  // namespace
}  // namespace rondo
