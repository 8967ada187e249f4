// Sets of images: every kind of source, splits and parts, what is rejected, and the check for
// broken files.
#include "rondo/image/sources.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "rondo/base/log.h"
#include "rondo/image/contact_sheet.h"
#include "rondo/image/sources_parts.h"
#include "tests/data/data_test_util.h"
#include "tests/image/image_test_util.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::expect_same_image;
using testing::gzip;
using testing::idx_of;
using testing::jpeg_of;
using testing::made_up_image;
using testing::random_bytes;
using testing::spill;
using testing::tar_end;
using testing::tar_member;
using testing::TempDir;
using testing::zstd;
using Names = std::vector<std::string>;

class Sources : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& contents) {
    const std::string path = folder_.file(name);
    fs::create_directories(fs::path(path).parent_path());
    spill(path, contents);
    return path;
  }

  // Names relative to the folder.
  Names names_of(const ImageSet& images) const {
    Names names;
    for (int64_t i = 0; i < images.count(); ++i) {
      names.push_back(images.name(i).substr(folder_.path().size() + 1));
    }
    return names;
  }

  static std::vector<int64_t> labels_of(const ImageSet& images) {
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < images.count(); ++i) {
      labels.push_back(images.label(i));
    }
    return labels;
  }

  std::unique_ptr<ImageSet> open(const std::string& name) const {
    return open_images(folder_.file(name));
  }
  void expect_no_set(const std::string& name, const std::string& reason,
                     ExitCode code = ExitCode::bad_input) const {
    const Error error = error_of([&] { open(name); });
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }

  TempDir folder_;
};

TEST_F(Sources, ClassFolders) {
  put("set/train/b/2.JPG", jpeg_of(made_up_image(9, 7, 1)));
  put("set/train/b/1.png", encode_png(made_up_image(5, 6, 2)));
  put("set/train/a/deep/x.jpeg", jpeg_of(made_up_image(4, 4, 3)));
  put("set/train/a/notes.txt", "no image");
  put("set/train/.hidden/1.png", "x");
  put("set/val/a/1.png", encode_png(made_up_image(3, 3, 4)));
  put("set/classes.tsv", "b\ta bee\nzz\tnothing\n");
  const std::unique_ptr<ImageSet> images = open("set/train/");
  EXPECT_EQ(names_of(*images),
            (Names{"set/train/a/deep/x.jpeg", "set/train/b/1.png", "set/train/b/2.JPG"}));
  EXPECT_EQ(labels_of(*images), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(images->classes(), (Names{"a", "b"}));
  EXPECT_EQ(images->titles(), (Names{"a", "a bee"}));
  expect_same_image(images->load(1), made_up_image(5, 6, 2), "png");
  EXPECT_EQ(images->load(2).width, 9);
  EXPECT_EQ(images->checksum().size(), 16U);
  expect_no_set("set", "name one of them at the end of the path");
  expect_no_set("set/nothing", "does not contain 'nothing'", ExitCode::io);
  expect_no_set("nothing/at/all", "no such file", ExitCode::io);
  fs::create_directory(folder_.file("empty"));
  expect_no_set("empty", "no images in class folders");
  put("flat/1.png", "x");
  expect_no_set("flat", "no images in class folders");
  put("text.txt", "x");
  expect_no_set("text.txt", "not a set of images");
  expect_no_set("text.txt/train", "not a folder or tar");
}

TEST_F(Sources, ListingClassFoldersShowsProgress) {
  for (const char* name : {"set/a/1.png", "set/b/1.png", "set/c/1.png"}) put(name, "x");
  std::string output;
  open_class_folder(folder_.file("set"), testing::slow_loading(output));
  EXPECT_EQ(output.find("listing class folders"), 1U) << output;  // after a carriage return
  EXPECT_NE(output.find("2/3  66%"), std::string::npos) << output;
  EXPECT_NE(output.find(" left"), std::string::npos) << output;
}

TEST_F(Sources, ChecksumsKnowWhatIsInASet) {
  for (const std::string set : {"one", "same", "more", "other"}) {
    put(set + "/a/1.png", "x");
    put(set + "/b/2.png", set);
  }
  put("more/b/3.png", "x");
  fs::rename(folder_.file("other/b/2.png"), folder_.file("other/b/3.png"));
  EXPECT_EQ(open("one")->checksum(), open("same")->checksum());
  EXPECT_NE(open("one")->checksum(), open("more")->checksum());
  EXPECT_NE(open("one")->checksum(), open("other")->checksum());
  EXPECT_NE(open("one")->checksum(), open("one#0:1")->checksum());
  EXPECT_NE(open("one#1:2")->checksum(), open("one#0:1")->checksum());
}

TEST_F(Sources, Archives) {
  const std::string png = encode_png(made_up_image(5, 6, 2));
  const std::string archive =
      tar_member("set/train/b/2.png", "broken") + tar_member("set/train/b/1.png", png) +
      tar_member("set/train/b/._1.png", "apple") + tar_member("set/train/a/1.PNG", png) +
      tar_member("set/readme.txt", "x") + tar_member("set/val/a/9.png", png) +
      tar_member("set/train/b/2.png", png) + tar_end();
  put("set.tar", archive);
  put("set.tar.gz", gzip(archive));
  put("set.tgz", gzip(archive));
  put("set.tar.zst", zstd(archive));
  put("classes.tsv", "a\tan a\n");
  for (const std::string name : {"set.tar", "set.tar.gz", "set.tgz", "set.tar.zst"}) {
    for (const std::string inside : {"/train", "/set/train"}) {
      const std::unique_ptr<ImageSet> images = open(name + inside);
      EXPECT_EQ(names_of(*images), (Names{name + "/set/train/a/1.PNG", name + "/set/train/b/1.png",
                                          name + "/set/train/b/2.png"}));
      EXPECT_EQ(images->classes(), (Names{"a", "b"}));
      EXPECT_EQ(images->titles(), (Names{"an a", "b"}));
      EXPECT_EQ(labels_of(*images), (std::vector<int64_t>{0, 1, 1}));
      expect_same_image(images->load(2), made_up_image(5, 6, 2), "the later of two");
    }
    EXPECT_EQ(open(name + "/val")->count(), 1);
    EXPECT_EQ(open(name + "/train")->checksum(), open("set.tar/train")->checksum());
    expect_no_set(name, "several splits: train, val");
    expect_no_set(name + "/test", "no images below 'test'");
    expect_no_set(name + "/train/a", "no images in class folders");
  }
  put("one.tar", tar_member("./top/train/x/1.png", png) + tar_end());
  EXPECT_EQ(open("one.tar")->classes(), Names{"x"});
  put("box/one.tar.gz", gzip(archive));
  put("box/classes.tsv", "a\tan a\n");
  EXPECT_EQ(open("box/val")->titles(), Names{"an a"});
  expect_no_set("box", "several splits: train, val");
  put("box/two.tar", archive);
  expect_no_set("box/val", "does not contain 'val'", ExitCode::io);
  put("none.tar", tar_end());
  expect_no_set("none.tar", "no images");
  put("text.tar", "this is no archive");
  expect_no_set("text.tar", "is truncated");
  put("cut.tar.gz", gzip(archive).substr(0, 300));
  expect_no_set("cut.tar.gz", "cut.tar.gz");
}

std::string cifar_record(int label, char fill) {
  return std::string(1, static_cast<char>(label)) + std::string(1024, fill) +
         std::string(1024, static_cast<char>(fill + 1)) +
         std::string(1024, static_cast<char>(fill + 2));
}

TEST_F(Sources, Cifar) {
  const std::string one = cifar_record(3, 'a') + cifar_record(9, 'b');
  const std::string two = cifar_record(0, 'c');
  put("c/data_batch_2.bin", two);
  put("c/data_batch_1.bin.gz", gzip(one));
  put("c/test_batch.bin", cifar_record(1, 'd'));
  put("c/batches.meta.txt", "k0\nk1\nk2\nk3\nk4\nk5\nk6\nk7\nk8\nk9\n\n");
  const std::unique_ptr<ImageSet> train = open("c/train");
  EXPECT_EQ(labels_of(*train), (std::vector<int64_t>{3, 9, 0}));
  EXPECT_EQ(names_of(*train),
            (Names{"c/data_batch_1.bin.gz#0", "c/data_batch_1.bin.gz#1", "c/data_batch_2.bin#0"}));
  EXPECT_EQ(train->classes()[9], "k9");
  const Image image = train->load(1);
  EXPECT_EQ(image.width, 32);
  EXPECT_EQ(image.pixels[3 * 500], 'b');
  EXPECT_EQ(image.pixels[3 * 500 + 2], 'd');
  EXPECT_EQ(train->load(2).pixels[0], 'c');
  EXPECT_EQ(open("c/test")->count(), 1);
  EXPECT_EQ(open("c/data_batch_1.bin.gz")->count(), 2);
  expect_no_set("c", "several splits: train, test");
  expect_no_set("c/valid", "split 'valid' does not exist");
  put("cifar.tar.gz",
      gzip(tar_member("cifar/data_batch_2.bin", two) + tar_member("cifar/data_batch_1.bin", one) +
           tar_member("cifar/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj") +
           tar_member("cifar/test_batch.bin", two) + tar_end()));
  const std::unique_ptr<ImageSet> packed = open("cifar.tar.gz/train");
  EXPECT_EQ(labels_of(*packed), (std::vector<int64_t>{3, 9, 0}));
  EXPECT_EQ(packed->classes()[3], "d");
  put("h/train.bin", std::string(1, '\x05') + cifar_record(42, 'x'));
  const std::unique_ptr<ImageSet> hundred = open("h");
  EXPECT_EQ(hundred->classes().size(), 100U);
  EXPECT_EQ(hundred->label(0), 42);
  EXPECT_EQ(hundred->load(0).pixels[1], 'y');
  put("m/data_batch_1.bin", one);
  put("m/data_batch_2.bin", std::string(1, '\x05') + cifar_record(42, 'x'));
  expect_no_set("m", "mixed");
  put("d/data_batch_1.bin", one + "x");
  expect_no_set("d", "expected CIFAR records");
}

TEST_F(Sources, Idx) {
  const std::string pixels = random_bytes(3 * 4 * 5, 1);
  put("f/train-images-idx3-ubyte.gz", gzip(idx_of({3, 4, 5}, pixels)));
  put("f/train-labels-idx1-ubyte.gz", gzip(idx_of({3}, std::string("\2\0\1", 3))));
  put("f/t10k-images-idx3-ubyte", idx_of({1, 4, 5}, pixels.substr(0, 20)));
  put("f/t10k-labels-idx1-ubyte.gz", gzip(idx_of({1}, std::string("\1", 1))));
  for (const std::string name :
       {"f/train", "f/train-images-idx3-ubyte.gz", "f/train-labels-idx1-ubyte.gz"}) {
    const std::unique_ptr<ImageSet> images = open(name);
    EXPECT_EQ(labels_of(*images), (std::vector<int64_t>{2, 0, 1}));
    EXPECT_EQ(images->classes(), (Names{"0", "1", "2"}));
    const Image image = images->load(2);
    EXPECT_EQ(image.width, 5);
    EXPECT_EQ(image.height, 4);
    for (size_t i = 0; i < 60; ++i) {
      EXPECT_EQ(image.pixels[i], static_cast<uint8_t>(pixels[40 + i / 3]));
    }
  }
  EXPECT_EQ(open("f/test")->count(), 1);
  EXPECT_EQ(open("f/t10k")->name(0), folder_.file("f/t10k-images-idx3-ubyte#0"));
  expect_no_set("f", "several splits: t10k, train");
  expect_no_set("f/val", "split 'val' does not exist");
  put("g/train-images-idx3-ubyte", idx_of({3, 4, 5}, pixels));
  expect_no_set("g", "partner file does not exist", ExitCode::io);
  put("g/train-labels-idx1-ubyte", idx_of({2}, "ab"));
  expect_no_set("g", "expected images [n, height, width]");
  put("g/train-labels-idx1-ubyte", idx_of({4}, "ab"));
  expect_no_set("g", "IDX header");
}

TEST_F(Sources, PartsOfSets) {
  std::string records;
  for (int i = 0; i < 12; ++i) {
    records += cifar_record(i % 3, static_cast<char>('a' + i));
  }
  put("x.bin", records);
  const auto first_pixels = [&](const std::string& part) {
    const std::unique_ptr<ImageSet> images = open("x.bin" + part);
    std::string found;
    for (int64_t i = 0; i < images->count(); ++i) {
      const Image image = images->load(i);
      found.push_back(static_cast<char>(image.pixels[0]));
      EXPECT_EQ(images->label(i), (found.back() - 'a') % 3);
      EXPECT_NE(images->name(i).find("#" + std::to_string(found.back() - 'a')), std::string::npos);
    }
    return found;
  };
  EXPECT_EQ(first_pixels("#0:3"), "abc");
  EXPECT_EQ(first_pixels("#:"), "abcdefghijkl");
  EXPECT_EQ(first_pixels("#10:"), "kl");
  EXPECT_EQ(first_pixels("#:-9"), "abc");
  EXPECT_EQ(first_pixels("#-2:100"), "kl");
  EXPECT_EQ(first_pixels("#:1/class"), "abc");
  EXPECT_EQ(first_pixels("#-1:/class"), "jkl");
  EXPECT_EQ(first_pixels("#:3/class"), "abcdefghi");
  for (const std::string part : {"#5:5", "#x:2", "#1", "#1:2:3", "#:2/classes", "#--1:", "#"}) {
    expect_no_set("x.bin" + part, "x.bin");
  }
  EXPECT_EQ(open("x.bin#0:3")->classes().size(), 10U);
}

TEST_F(Sources, CheckListsWhatIsBroken) {
  const std::string jpeg = jpeg_of(made_up_image(20, 20, 1));
  for (int i = 0; i < 50; ++i) {
    const bool broken = i % 11 == 3;
    put("set/k/" + std::to_string(100 + i) + ".jpg",
        broken ? jpeg.substr(0, jpeg.size() / 2) : jpeg);
  }
  put("set/k/999.png", "text");
  const std::unique_ptr<ImageSet> images = open("set");
  fs::remove(folder_.file("set/k/120.jpg"));
  for (const int64_t threads : {1, 3}) {
    const std::vector<BadImage> bad = check_images(*images, threads);
    ASSERT_EQ(bad.size(), 7U);
    EXPECT_EQ(bad[0].name, folder_.file("set/k/103.jpg"));
    EXPECT_EQ(bad[0].index, 3);
    EXPECT_NE(bad[0].reason.find("is truncated"), std::string::npos);
    EXPECT_EQ(bad[2].index, 20);
    EXPECT_NE(bad[2].reason.find("No such file"), std::string::npos);
    EXPECT_EQ(bad[6].index, 50);
  }
}

}  // namespace
}  // namespace rondo
