// Contact sheets: positions of images; the file is complete or absent.
#include "rondo/image/contact_sheet.h"

#include <gtest/gtest.h>

#include "rondo/image/decode.h"
#include "tests/image/image_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::expect_same_image;
using testing::made_up_image;
using testing::slurp;
using testing::TempDir;

TEST(ContactSheet, PutsImagesInRows) {
  const std::vector<Image> images = {made_up_image(4, 3, 1), made_up_image(6, 2, 2),
                                     made_up_image(5, 5, 3)};
  const Image sheet = contact_sheet(images, 2);
  EXPECT_EQ(sheet.width, 2 * (6 + 2) + 2);
  EXPECT_EQ(sheet.height, 2 * (5 + 2) + 2);
  EXPECT_EQ(sheet.pixels[0], 128);
  const auto pixel = [&](int64_t x, int64_t y) { return sheet.row(y)[x * 3]; };
  EXPECT_EQ(pixel(2, 2), images[0].row(0)[0]);
  EXPECT_EQ(pixel(5, 4), images[0].row(2)[9]);
  EXPECT_EQ(pixel(6, 2), 128);
  EXPECT_EQ(pixel(10, 2), images[1].row(0)[0]);
  EXPECT_EQ(pixel(2, 9), images[2].row(0)[0]);
  EXPECT_EQ(contact_sheet(images, 9).width, 3 * 8 + 2);
}

TEST(ContactSheet, WritesWholeFiles) {
  const TempDir folder;
  const std::vector<Image> images(10, made_up_image(20, 20, 1));
  write_contact_sheet(images, 4, folder.file("grid.png"));
  expect_same_image(decode_image(slurp(folder.file("grid.png")), "grid"), contact_sheet(images, 4),
                    "sheet");
  EXPECT_EQ(folder.count(), 1);
  EXPECT_EQ(error_of([&] { write_contact_sheet(images, 4, folder.file("no/grid.png")); }).code(),
            ExitCode::io);
  const std::vector<Image> wide(20, made_up_image(1000, 1, 1));
  EXPECT_EQ(error_of([&] { write_contact_sheet(wide, 20, folder.file("wide.png")); }).code(),
            ExitCode::bad_input);
  EXPECT_EQ(folder.count(), 1);
}

}  // namespace
}  // namespace rondo
