// ImageLoader and memory: batches that cannot fit are rejected before anything is allocated.
#include <gtest/gtest.h>

#include "rondo/image/pipeline.h"
#include "tests/image/image_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::made_up_image;

class OneImage : public ImageSet {
 public:
  OneImage() {
    labels_ = {0};
    classes_ = titles_ = {"a"};
    seal({});
  }
  std::string name(int64_t /*i*/) const override { return "image"; }

 protected:
  Image fetch(int64_t /*i*/, const EnoughSide& /*enough*/) const override {
    return made_up_image(8, 8, 1);
  }
};

TEST(LoaderLimits, BatchesBeyondMemoryAreAnError) {
  const OneImage images;
  LoaderOptions options;
  options.side = 8;
  for (const int64_t rows : {int64_t{1} << 40, INT64_MAX / 2}) {  // the second one overflows
    options.rows = rows;
    const Error error = error_of([&] { ImageLoader loader(images, {}, options); });
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_NE(error.message().find("images of 8 x 8 pixels"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace rondo
