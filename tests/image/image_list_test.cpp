// Image files by name and by folder: which are found, in which order, what is rejected.
#include "rondo/image/image_list.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::spill;
using testing::TempDir;
using Paths = std::vector<std::string>;

class ImageList : public ::testing::Test {
 protected:
  ImageList() {
    for (const char* name : {"f/b.png", "f/a.JPG", "f/sub/z.jpeg", "f/sub/.hidden.png", "f/c.txt",
                             "f/.secret/x.png", "f/B.PNG", "odd.webp"}) {
      fs::create_directories(fs::path(path(name)).parent_path());
      spill(path(name), "x");
    }
    fs::create_directories(path("empty"));
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

  TempDir folder_;
};

TEST_F(ImageList, AFolderStandsForItsImagesSortedByPath) {
  const Paths expected = {path("f/B.PNG"), path("f/a.JPG"), path("f/b.png"), path("f/sub/z.jpeg")};
  EXPECT_EQ(list_images({path("f")}), expected);
  EXPECT_EQ(list_images({path("f/")}), expected) << "a slash at the end is no other folder";
}

TEST_F(ImageList, FilesStandForThemselvesInTheOrderGiven) {
  const Paths given = {path("odd.webp"), path("nowhere.png"), path("f/b.png"), path("f/b.png")};
  EXPECT_EQ(list_images(given), given);
  EXPECT_EQ(list_images({}), Paths());
  const Paths mixed = list_images({path("f/b.png"), path("f/sub"), path("f/a.JPG")});
  EXPECT_EQ(mixed, Paths({path("f/b.png"), path("f/sub/z.jpeg"), path("f/a.JPG")}));
}

TEST_F(ImageList, AFolderWithoutImagesIsSaid) {
  const Error error = error_of([&] { list_images({path("f"), path("empty")}); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_EQ(error.message(), path("empty") + ": contains no images");
}

TEST_F(ImageList, AFolderWithinItselfEnds) {
  fs::create_directory_symlink(path("f"), path("f/again"));
  EXPECT_EQ(list_images({path("f")}).size(), 4u);
}

}  // namespace
}  // namespace rondo
