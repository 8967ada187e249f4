// Augmentation as a whole: what magnitudes mean, the parameters of crops and erasing,
// normalization, the configuration, and that an image depends only on its draws.
#include "rondo/image/augment.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/image/image_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::expect_same_image;
using testing::made_up_image;
using testing::mean_difference;

// timm's numbers at level 9, by hand.
TEST(RandAugment, ArgumentsAreTimms) {
  const ImageSize size{200, 100};
  EXPECT_DOUBLE_EQ(rand_argument(Operation::rotate, 9, false, size), 27);
  EXPECT_DOUBLE_EQ(rand_argument(Operation::rotate, 9, true, size), -27);
  EXPECT_EQ(rand_argument(Operation::posterize, 9, false, size), 1);
  EXPECT_EQ(rand_argument(Operation::posterize, 10, false, size), 0);
  EXPECT_EQ(rand_argument(Operation::posterize, 2, false, size), 4);
  EXPECT_EQ(rand_argument(Operation::solarize, 9, false, size), 26);
  EXPECT_EQ(rand_argument(Operation::solarize, 0, false, size), 256);
  EXPECT_EQ(rand_argument(Operation::solarize_add, 9, false, size), 99);
  EXPECT_EQ(rand_argument(Operation::solarize_add, 5.5, false, size), 60);
  for (const Operation operation :
       {Operation::color, Operation::contrast, Operation::brightness, Operation::sharpness}) {
    EXPECT_DOUBLE_EQ(rand_argument(operation, 9, false, size), 1.81);
    EXPECT_DOUBLE_EQ(rand_argument(operation, 9, true, size), 1 - 0.81);
    EXPECT_DOUBLE_EQ(rand_argument(operation, 10, true, size), 0.1);
  }
  EXPECT_DOUBLE_EQ(rand_argument(Operation::shear_x, 9, true, size), -0.27);
  EXPECT_DOUBLE_EQ(rand_argument(Operation::shear_y, 9, false, size), 0.27);
  EXPECT_DOUBLE_EQ(rand_argument(Operation::translate_x, 9, false, size), 81);
  EXPECT_DOUBLE_EQ(rand_argument(Operation::translate_y, 9, true, size), -40.5);
  EXPECT_EQ(rand_argument(Operation::equalize, 9, true, size), 0);
}

TEST(TrivialAugment, ArgumentsAreTorchvisions) {
  std::set<Operation> all;
  for (int64_t i = 0; i < kTrivialOperations; ++i) {
    all.insert(trivial_operation(i));
  }
  EXPECT_EQ(all.size(), 14U);
  EXPECT_EQ(all.count(Operation::invert) + all.count(Operation::solarize_add), 0U);
  EXPECT_NEAR(trivial_argument(Operation::shear_x, 30, true), -0.99, 1e-6);
  EXPECT_EQ(trivial_argument(Operation::rotate, 20, false), 90);
  EXPECT_EQ(trivial_argument(Operation::rotate, 30, true), -135);
  EXPECT_EQ(trivial_argument(Operation::translate_x, 30, false), -32);
  EXPECT_EQ(trivial_argument(Operation::translate_y, 29, true), 30);  // 30.93 cut
  EXPECT_NEAR(trivial_argument(Operation::brightness, 15, true), 1 - 0.495, 1e-6);
  EXPECT_EQ(trivial_argument(Operation::posterize, 0, false), 8);
  EXPECT_EQ(trivial_argument(Operation::posterize, 30, false), 2);
  EXPECT_EQ(trivial_argument(Operation::posterize, 13, false), 5);
  EXPECT_EQ(trivial_argument(Operation::solarize, 0, false), 255);
  EXPECT_EQ(trivial_argument(Operation::solarize, 9, false), 178.5);
  EXPECT_EQ(trivial_argument(Operation::solarize, 30, false), 0);
}

// Every operation is drawn equally often, and half of the time none is applied.
TEST(RandAugment, DrawsEvenly) {
  const Image image = made_up_image(16, 16, 1);
  RandAugment options;
  options.operations = 1;
  int changed = 0;
  constexpr int kDraws = 2000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    CounterRandom random(1, "rand", i);
    Image copy = image;
    rand_augment(copy, options, random);
    changed += copy.pixels == image.pixels ? 0 : 1;
  }
  EXPECT_NEAR(changed, kDraws / 2, 120);
}

TEST(ColorJitter, StaysWithinItsShare) {
  Image gray(4, 4);
  std::fill(gray.pixels.begin(), gray.pixels.end(), uint8_t{100});
  int lowest = 255;
  int highest = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    CounterRandom random(1, "jitter", i);
    Image copy = gray;
    color_jitter(copy, 0.4, random);  // on a single gray only brightness has an effect
    lowest = std::min<int>(lowest, copy.pixels[0]);
    highest = std::max<int>(highest, copy.pixels[0]);
  }
  EXPECT_GE(lowest, 59);
  EXPECT_LE(lowest, 63);
  EXPECT_LE(highest, 140);
  EXPECT_GE(highest, 136);
}

TEST(RandomResizedCrop, FollowsItsLaw) {
  const ImageSize size{120, 90};
  double areas = 0;
  constexpr int kDraws = 5000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    CounterRandom random(1, "crop", i);
    const Rectangle part = random_resized_crop(size, 0.08, random);
    ASSERT_TRUE(part.left >= 0 && part.top >= 0 && part.width >= 1 && part.height >= 1);
    ASSERT_TRUE(part.left + part.width <= 120 && part.top + part.height <= 90);
    const double area = static_cast<double>(part.width * part.height) / (120 * 90);
    const double aspect = static_cast<double>(part.width) / static_cast<double>(part.height);
    ASSERT_GT(area, 0.07);
    ASSERT_GT(aspect, 0.72);
    ASSERT_LT(aspect, 1.39);
    areas += area;
  }
  EXPECT_NEAR(areas / kDraws, 0.435, 0.02);  // torchvision's own loop in Python, 100,000 draws
  // A shape that no crop of the right aspect and area fits: the middle.
  CounterRandom random(1, "long");
  const Rectangle middle = random_resized_crop({1000, 10}, 1.0, random);
  EXPECT_EQ(middle.height, 10);
  EXPECT_EQ(middle.width, 13);
  EXPECT_EQ(middle.left, 493);
  const Rectangle tall = random_resized_crop({10, 1000}, 1.0, random);
  EXPECT_EQ(tall.height, 13);
  for (uint64_t i = 0; i < 100; ++i) {
    CounterRandom tiny(1, "tiny", i);
    const Rectangle dot = random_resized_crop({1, 1}, 0.08, tiny);
    EXPECT_EQ(dot.width * dot.height, 1);
  }
}

TEST(RandomErase, FollowsItsLaw) {
  constexpr int64_t kSide = 40;
  int erased = 0;
  double noise = 0;
  double squares = 0;
  int64_t count = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    CounterRandom random(1, "erase", i);
    std::vector<float> pixels(3 * kSide * kSide, 77.0F);
    random_erase(pixels.data(), kSide, 0.25, random);
    std::array<int64_t, 3> changed{};
    for (size_t at = 0; at < pixels.size(); ++at) {
      if (pixels[at] != 77.0F) {
        ++changed[at / (kSide * kSide)];
        noise += pixels[at];
        squares += static_cast<double>(pixels[at]) * pixels[at];
        ++count;
      }
    }
    EXPECT_EQ(changed[0], changed[1]);
    EXPECT_EQ(changed[0], changed[2]);
    if (changed[0] > 0) {
      ++erased;
      EXPECT_GE(changed[0], kSide * kSide / 60);
      EXPECT_LE(changed[0], kSide * kSide * 36 / 100);
    }
  }
  EXPECT_NEAR(erased, 250, 60);
  EXPECT_NEAR(noise / static_cast<double>(count), 0, 0.02);
  EXPECT_NEAR(squares / static_cast<double>(count), 1, 0.02);
}

Augmenter::Load loader_of(const Image& image) {
  return [&image](const EnoughSide& enough) {
    (void)enough({image.width, image.height});
    return image;
  };
}

TEST(Augmenter, NormalizesAndBack) {
  AugmentConfig config;
  const Augmenter augmenter(config, 6);
  const Image image = made_up_image(6, 6, 1);
  std::vector<float> pixels(3 * 36);
  augmenter.normalize(image, pixels.data());
  for (int64_t i = 0; i < 36; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      const double expected =
          (image.pixels[static_cast<size_t>(i) * 3 + c] / 255.0 - config.mean[c]) / config.std[c];
      EXPECT_NEAR(pixels[c * 36 + static_cast<size_t>(i)], expected, 1e-6);
    }
  }
  expect_same_image(augmenter.picture(pixels.data()), image, "back");
}

TEST(Augmenter, IsAFunctionOfItsDraws) {
  const Image image = made_up_image(50, 40, 1);
  AugmentConfig config;
  config.erase = 0.5;
  config.color_jitter = 0.4;
  config.interpolation = "random";
  for (const std::string crop : {"random-resized", "pad", "none"}) {
    for (const std::string automatic : {"none", "rand", "trivial"}) {
      config.crop = crop;
      config.auto_augment = automatic;
      const Augmenter augmenter(config, 24);
      std::set<std::vector<float>> different;
      for (uint64_t i = 0; i < 40; ++i) {
        std::vector<float> a(3 * 24 * 24);
        std::vector<float> b(3 * 24 * 24);
        CounterRandom random_a(1, "augment", i);
        CounterRandom random_b(1, "augment", i);
        augmenter.train(loader_of(image), random_a, a.data());
        augmenter.train(loader_of(image), random_b, b.data());
        EXPECT_EQ(a, b);
        different.insert(a);
      }
      EXPECT_EQ(different.size(), 40U) << crop << " " << automatic;
    }
  }
}

// Without anything random: the image unchanged, mirrored, or shifted by up to four pixels over
// black.
TEST(Augmenter, SmallImagesArePaddedAndCropped) {
  AugmentConfig config;
  config.crop = "pad";
  const Image image = made_up_image(32, 32, 1);
  const Augmenter augmenter(config, 32);
  expect_same_image(augmenter.evaluate_image(image), image, "evaluation");
  std::set<std::pair<int64_t, int64_t>> places;
  int mirrored = 0;
  for (uint64_t i = 0; i < 600; ++i) {
    CounterRandom random(1, "pad", i);
    const Image got = augmenter.train_image(loader_of(image), random);
    bool found = false;
    for (int flip = 0; flip < 2 && !found; ++flip) {
      Image upright = got;
      if (flip == 1) {
        mirror(upright);
      }
      for (int64_t y = -4; y <= 4 && !found; ++y) {
        for (int64_t x = -4; x <= 4 && !found; ++x) {
          found = upright.pixels == crop_padded(image, x, y, 32, 32, {0, 0, 0}).pixels;
          if (found) {
            places.insert({x, y});
            mirrored += flip;
          }
        }
      }
    }
    ASSERT_TRUE(found);
  }
  EXPECT_GT(places.size(), 75U);
  EXPECT_NEAR(mirrored, 300, 70);
}

// A crop from an image decoded at a smaller size shows the same part.
TEST(Augmenter, ScaledDecodingShowsTheSamePart) {
  Image image(320, 240);
  for (int64_t y = 0; y < 240; ++y) {
    for (int64_t x = 0; x < 320; ++x) {
      image.row(y)[x * 3] = static_cast<uint8_t>(x * 255 / 319);
      image.row(y)[x * 3 + 1] = static_cast<uint8_t>(y * 255 / 239);
    }
  }
  AugmentConfig config;
  config.flip = 0;
  const Augmenter augmenter(config, 32);
  int smaller = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    const auto scaled = [&](const EnoughSide& enough) {
      const int64_t side = enough({320, 240});
      for (const int64_t eighths : {1, 2, 3, 4, 5, 6, 7}) {
        if (side > 0 && 240 * eighths / 8 >= side) {
          ++smaller;
          return resize(image, 40 * eighths, 30 * eighths, Filter::bilinear);
        }
      }
      return image;
    };
    CounterRandom one(1, "scaled", i);
    CounterRandom two(1, "scaled", i);
    const Image whole = augmenter.train_image(loader_of(image), one);
    const Image part = augmenter.train_image(scaled, two);
    EXPECT_LT(mean_difference(whole, part), 3.0);
  }
  EXPECT_GT(smaller, 40);
}

TEST(AugmentConfig, ReadsAndDumps) {
  const ConfigTable table = ConfigTable::from_string(
      "[augment]\ncrop = \"pad\"\nauto_augment = \"rand\"\nmixup = 0.8\nmean = [0.5, 0.5, 0.5]\n",
      "run.toml");
  AugmentConfig config;
  read_config(table, "augment", config);
  EXPECT_EQ(config.crop, "pad");
  EXPECT_EQ(config.mixup, 0.8);
  check_augment(config, "run.toml: augment");
  AugmentConfig again;
  read_config(ConfigTable::from_string(dump_config(config, "augment"), "dump"), "augment", again);
  EXPECT_EQ(dump_config(again), dump_config(config));
  config.mean = {0.5};
  const Error error = error_of([&] { check_augment(config, "run.toml: augment"); });
  EXPECT_NE(error.message().find("run.toml: augment.mean: expected three"), std::string::npos);
  for (const char* bad : {"crop = \"middle\"", "flip = 2", "repeats = 0", "std = [0, 1, 1]"}) {
    const ConfigTable wrong = ConfigTable::from_string(std::string("[augment]\n") + bad, "x");
    EXPECT_EQ(error_of([&] { read_config(wrong, "augment", again); }).code(), ExitCode::bad_input);
  }
}

}  // namespace
}  // namespace rondo
