// Reading images ahead: in the requested order, by any number of threads, including broken ones.
#include "rondo/image/read_ahead.h"

#include <gtest/gtest.h>

#include "rondo/image/contact_sheet.h"
#include "rondo/image/decode.h"
#include "tests/image/image_test_util.h"

namespace rondo {
namespace {

using testing::made_up_image;
using testing::slurp;
using testing::spill;
using testing::TempDir;

constexpr int64_t kAheadSide = 8;

class ReadAhead : public ::testing::Test {
 protected:
  ReadAhead() : augmenter_(AugmentConfig(), kAheadSide) {
    for (int64_t i = 0; i < 20; ++i) {
      spill(path(i), i % 7 == 3 ? "no image" : encode_png(made_up_image(9 + i, 12, uint64_t(i))));
    }
  }
  std::string path(int64_t i) const { return folder_.file(std::to_string(i) + ".png"); }

  void expect_image(const PreparedImage& image, int64_t i) const {
    EXPECT_EQ(image.path, path(i));
    if (i % 7 == 3) {
      EXPECT_EQ(image.error.rfind(path(i) + ": ", 0), 0u) << image.error;
      return;
    }
    EXPECT_EQ(image.error, "");
    std::vector<float> expected(3 * kAheadSide * kAheadSide);
    augmenter_.evaluate(decode_image(slurp(path(i)), path(i)), expected.data());
    EXPECT_EQ(image.pixels, expected) << i;
  }

  TempDir folder_;
  Augmenter augmenter_;
};

TEST_F(ReadAhead, GivesThemInOrder) {
  for (const int64_t threads : {0, 1, 3, 16}) {
    for (const int64_t most : {1, 4, 64}) {
      ImageReadAhead ahead(augmenter_, threads, most);
      PreparedImage image;
      int64_t asked = 0;
      for (int64_t taken = 0; taken < 20; ++taken) {
        for (; asked < 20 && ahead.room() > 0; ++asked) {
          ahead.ask(path(asked));
        }
        EXPECT_EQ(ahead.waiting(), asked - taken);
        EXPECT_LE(ahead.waiting(), most);
        ahead.take(image);
        expect_image(image, taken);
      }
      EXPECT_EQ(ahead.waiting(), 0);
    }
  }
}

TEST_F(ReadAhead, EndsWithImagesStillAskedFor) {
  ImageReadAhead ahead(augmenter_, 2, 20);
  for (int64_t i = 0; i < 20; ++i) {
    ahead.ask(path(i));
  }
  PreparedImage image;
  ahead.take(image);
  expect_image(image, 0);
}

TEST_F(ReadAhead, PathsThatAreNoneAreErrors) {
  ImageReadAhead ahead(augmenter_, 1, 4);
  ahead.ask(folder_.file("nowhere.png"));
  ahead.ask(path(0) + std::string("\0and more", 9));
  ahead.ask(folder_.path());
  PreparedImage image;
  ahead.take(image);
  EXPECT_EQ(image.error,
            folder_.file("nowhere.png") + ": cannot open for reading: No such file or directory");
  ahead.take(image);
  EXPECT_NE(image.error.find("it contains a zero byte"), std::string::npos) << image.error;
  ahead.take(image);
  EXPECT_NE(image.error, "") << "a folder is no image";
}

}  // namespace
}  // namespace rondo
