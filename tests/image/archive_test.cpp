// Tar archives, IDX arrays and CIFAR records: their contents, long names, and files with wrong
// sizes.
#include "rondo/image/archive.h"

#include <gtest/gtest.h>

#include "tests/image/image_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::idx_of;
using testing::tar_end;
using testing::tar_member;

TEST(Tar, ListsFilesInOrder) {
  const std::string archive = tar_member("top/", "", '5') + tar_member("top/a.png", "AAA") +
                              tar_member("./top/b.png", std::string(513, 'B')) +
                              tar_member("link", "", '2') + tar_member("old", "v7", '\0') +
                              tar_end();
  const std::vector<TarEntry> entries = list_tar(archive, "x.tar");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].name, "top/a.png");
  EXPECT_EQ(archive.substr(entries[0].begin, entries[0].size), "AAA");
  EXPECT_EQ(entries[1].name, "top/b.png");
  EXPECT_EQ(archive.substr(entries[1].begin, entries[1].size), std::string(513, 'B'));
  EXPECT_EQ(entries[2].name, "old");
  EXPECT_EQ(list_tar(archive.substr(0, archive.size() - 1024), "x.tar").size(),
            3U);  // no end token
  EXPECT_TRUE(list_tar("", "x.tar").empty());
  EXPECT_TRUE(list_tar(tar_end(), "x.tar").empty());
}

TEST(Tar, LongNames) {
  const std::string name = std::string(70, 'd') + "/" + std::string(120, 'f') + ".png";
  const std::string gnu =
      tar_member("././@LongLink", name + std::string(1, '\0'), 'L') + tar_member(name, "1");
  const std::string record = " path=" + name + "\n";
  const std::string length = std::to_string(record.size() + 3);
  const std::string pax = tar_member("x", "12 mtime=99\n" + length + record + "9 size=2\n", 'x') +
                          tar_member("short", "22");
  const std::string global = tar_member("g", "14 path=wrong\n", 'g') + tar_member("plain", "3");
  const std::vector<TarEntry> entries = list_tar(gnu + pax + global + tar_end(), "x.tar");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].name, name);
  EXPECT_EQ(entries[1].name, name);
  EXPECT_EQ(entries[1].size, 2U);
  EXPECT_EQ(entries[2].name, "plain");
  // ustar's own prefix; its checksum counts the field's letters.
  std::string prefixed = tar_member("file.png", "4");
  prefixed.replace(345, 3, "dir");
  const unsigned sum =
      static_cast<unsigned>(std::stoul(prefixed.substr(148, 6), nullptr, 8)) + 'd' + 'i' + 'r';
  char text[8];
  (void)std::snprintf(text, sizeof(text), "%06o", sum);
  prefixed.replace(148, 6, text);
  EXPECT_EQ(list_tar(prefixed, "x.tar").at(0).name, "dir/file.png");
}

TEST(Tar, ListingShowsProgress) {
  const std::string archive = tar_member("a.png", "A") + tar_member("b.png", "B");  // 4 blocks
  std::string output;
  list_tar(archive + tar_end(), "photos/x.tar", testing::slow_loading(output));
  EXPECT_EQ(output.find("listing x.tar"), 1U) << output;  // after a carriage return
  EXPECT_NE(output.find("2,048/3,072  66%"), std::string::npos) << output;
  EXPECT_NE(output.find(" left"), std::string::npos) << output;
  EXPECT_EQ(output.substr(output.size() - 4), "\r\x1b[K") << output;  // erased
}

TEST(Tar, LiesAreRefused) {
  const std::string good = tar_member("a", "data");
  const auto refused = [](const std::string& archive) {
    const Error error = error_of([&] { list_tar(archive, "x.tar"); });
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_NE(error.message().find("x.tar"), std::string::npos);
  };
  for (size_t size = 1; size < 512 + 4; ++size) {
    refused(good.substr(0, size));
  }
  for (size_t at = 0; at < 512; at += 7) {  // a wrong byte gives a wrong sum
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x21);
    refused(bad);
  }
  refused(tar_member("x", "1000 path=y\n", 'x'));
  refused(tar_member("x", "5 path=y\n", 'x'));
  refused(tar_member("x", "path=y\n", 'x'));
  refused(tar_member("x", "9 size=x\n", 'x') + good);
  refused(tar_member("x", "20 size=99999999999\n", 'x') + good);
  refused(tar_member("L", std::string(70000, 'n'), 'L') + good);
  refused(std::string(512, 'z'));
}

TEST(Idx, ShapesAndSizes) {
  const IdxArray array = parse_idx(idx_of({2, 3, 4}, std::string(24, 'x')), "images");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(array.begin, 16U);
  EXPECT_EQ(parse_idx(idx_of({5}, "12345"), "labels").begin, 8U);
  const auto refused = [](const std::string& bytes) {
    EXPECT_EQ(error_of([&] { parse_idx(bytes, "images"); }).code(), ExitCode::bad_input);
  };
  const std::string whole = idx_of({2, 3, 4}, std::string(24, 'x'));
  for (size_t size = 0; size < whole.size(); ++size) {
    refused(whole.substr(0, size));
  }
  refused(whole + "y");
  refused(idx_of({0, 3, 4}, ""));
  refused(idx_of({}, ""));
  refused(idx_of({1, 1, 1, 1, 1}, "x"));
  refused(idx_of({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "x"));
  refused(idx_of({0x80000000, 2, 0x80000000, 2}, ""));
  std::string floats = whole;
  floats[2] = 0x0D;
  refused(floats);
}

TEST(Cifar, BothKinds) {
  std::string ten;
  std::string hundred;
  for (int i = 0; i < 7; ++i) {
    ten += std::string(1, static_cast<char>(i)) + std::string(3072, 'p');
    hundred += std::string(1, static_cast<char>(19)) + std::string(1, static_cast<char>(90 + i)) +
               std::string(3072, 'p');
  }
  const CifarRecords a = parse_cifar(ten, "a.bin");
  EXPECT_EQ(a.count, 7);
  EXPECT_EQ(a.classes, 10);
  const CifarRecords b = parse_cifar(hundred, "b.bin");
  EXPECT_EQ(b.count, 7);
  EXPECT_EQ(b.classes, 100);
  EXPECT_EQ(b.label_at, 1U);
  const auto refused = [](const std::string& bytes) {
    EXPECT_EQ(error_of([&] { parse_cifar(bytes, "c.bin"); }).code(), ExitCode::bad_input);
  };
  refused("");
  refused(ten.substr(1));
  refused(ten + "x");
  ten[3073] = 10;
  refused(ten);
  hundred[1] = 100;
  refused(hundred);
}

}  // namespace
}  // namespace rondo
