// Tests of rondo/base/files.h.
#include "rondo/base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::slurp;
using testing::spill;
using testing::TempDir;

TEST(FilesTest, WriteFileWritesAndReplaces) {
  const TempDir dir;
  write_file(dir.file("a"), "one");
  EXPECT_EQ(slurp(dir.file("a")), "one");
  write_file(dir.file("a"), "two, longer");
  EXPECT_EQ(slurp(dir.file("a")), "two, longer");
  write_file(dir.file("a"), "");
  EXPECT_EQ(slurp(dir.file("a")), "");
  EXPECT_EQ(dir.count(), 1);
}

TEST(FilesTest, NothingIsVisibleBeforeCommit) {
  const TempDir dir;
  spill(dir.file("a"), "old");
  AtomicFile file(dir.file("a"));
  file.write(std::string(1 << 20, 'x'));
  EXPECT_EQ(slurp(dir.file("a")), "old");
  EXPECT_EQ(dir.count(), 2);  // the temporary file is next to it
  file.commit();
  EXPECT_EQ(slurp(dir.file("a")), std::string(1 << 20, 'x'));
  EXPECT_EQ(dir.count(), 1);
  EXPECT_EQ(file.bytes_written(), 1 << 20);
}

TEST(FilesTest, WithoutCommitTheOldFileStays) {
  const TempDir dir;
  spill(dir.file("a"), "old");
  {
    AtomicFile file(dir.file("a"));
    file.write("new");
  }
  EXPECT_EQ(slurp(dir.file("a")), "old");
  EXPECT_EQ(dir.count(), 1);
}

TEST(FilesTest, ManyWritesOfAllSizesArriveInOrder) {
  const TempDir dir;
  std::string expected;
  AtomicFile file(dir.file("a"));
  for (size_t size : {0, 1, 65535, 1, 65536, 65537, 3, 200000, 7, 65536}) {
    const std::string piece(size, static_cast<char>('a' + expected.size() % 26));
    file.write(piece);
    expected += piece;
  }
  file.commit();
  EXPECT_EQ(slurp(dir.file("a")), expected);
}

TEST(FilesTest, TwoWritersOfOnePathDoNotMix) {
  const TempDir dir;
  AtomicFile first(dir.file("a"));
  AtomicFile second(dir.file("a"));
  first.write("first");
  second.write("second");
  first.commit();
  EXPECT_EQ(slurp(dir.file("a")), "first");
  second.commit();
  EXPECT_EQ(slurp(dir.file("a")), "second");
}

// A disk that fills up halfway, simulated by this process's limit on file size.
TEST(FilesTest, AFailedWriteLeavesTheOldFile) {
  const TempDir dir;
  spill(dir.file("a"), "old");
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 100000;
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Error error = error_of([&] { write_file(dir.file("a"), std::string(300000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error.code(), ExitCode::io);
  EXPECT_EQ(error.message(), dir.file("a") + ": cannot write: File too large");
  EXPECT_EQ(slurp(dir.file("a")), "old");
  EXPECT_EQ(dir.count(), 1);
}

TEST(FilesTest, AFullDeviceSaysHowMuchWasNeeded) {
  const Error error = error_of([] { write_file("/dev/full", std::string(70000, 'x')); });
  EXPECT_EQ(error.code(), ExitCode::io);
  EXPECT_EQ(error.message(),
            "/dev/full: cannot write: No space left on device (70,000 bytes needed so far)");
  EXPECT_EQ(error.advice(), "free some space or write to another disk");
  // The device itself must still exist, and still be a device.
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(FilesTest, BufferedBytesToAFullDeviceFailAtCommit) {
  AtomicFile file("/dev/full");
  file.write("small");
  EXPECT_EQ(error_of([&] { file.commit(); }).code(), ExitCode::io);
}

TEST(FilesTest, DevicesAreWrittenAndNotReplaced) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(FilesTest, MissingDirectoryAndDirectoryTargets) {
  const TempDir dir;
  const Error missing = error_of([&] { write_file(dir.file("no/a"), "x"); });
  EXPECT_EQ(missing.code(), ExitCode::io);
  EXPECT_EQ(missing.message(), dir.file("no/a") +
                                   ": cannot create a temporary file next to it: "
                                   "No such file or directory");
  EXPECT_EQ(missing.advice(), "create the directory '" + dir.file("no") + "' first");
  EXPECT_EQ(error_of([&] { write_file(dir.path(), "x"); }).message(),
            dir.path() + ": cannot write: Is a directory");
  EXPECT_EQ(error_of([&] { write_file("", "x"); }).code(), ExitCode::io);
}

TEST(FilesTest, LongestNamesStillWork) {
  const TempDir dir;
  const std::string name(255, 'n');
  write_file(dir.file(name), "x");
  EXPECT_EQ(slurp(dir.file(name)), "x");
  EXPECT_EQ(error_of([&] { write_file(dir.file(name + "n"), "x"); }).code(), ExitCode::io);
}

TEST(FilesTest, PermissionsAreKeptAndLinksWrittenThrough) {
  const TempDir dir;
  spill(dir.file("real"), "old");
  ASSERT_EQ(::chmod(dir.file("real").c_str(), 0640), 0);
  ASSERT_EQ(::symlink("real", dir.file("link").c_str()), 0);
  write_file(dir.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(dir.file("link")));
  EXPECT_EQ(slurp(dir.file("real")), "new");
  struct stat info {};
  ASSERT_EQ(::stat(dir.file("real").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0640U);
}

TEST(FilesTest, ReadTextFile) {
  const TempDir dir;
  spill(dir.file("a"), "hello");
  EXPECT_EQ(read_text_file(dir.file("a"), 5), "hello");
  const Error error = error_of([&] { read_text_file(dir.file("a"), 4); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_EQ(error.message(), dir.file("a") + ": expected at most 4 bytes, got more");
  const std::string big(200000, 'b');
  spill(dir.file("b"), big);
  EXPECT_EQ(read_text_file(dir.file("b"), 1 << 20), big);
}

TEST(FilesTest, ReadTextFileRefusesWhatIsNoFile) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { read_text_file(dir.file("no"), 5); }).message(),
            dir.file("no") + ": cannot open for reading: No such file or directory");
  EXPECT_EQ(error_of([&] { read_text_file(dir.path(), 5); }).message(),
            dir.path() + ": cannot read: Is a directory");
  EXPECT_EQ(error_of([] { read_text_file("/dev/zero", 1000); }).code(), ExitCode::bad_input);
}

TEST(FilesTest, MappedFileShowsTheBytes) {
  const TempDir dir;
  spill(dir.file("a"), "abc");
  MappedFile file(dir.file("a"));
  ASSERT_EQ(file.size(), 3U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.data()), file.size()), "abc");
}

TEST(FilesTest, MappedFileOutlivesReplacementOfItsPath) {
  const TempDir dir;
  spill(dir.file("a"), "abc");
  const MappedFile file(dir.file("a"));
  write_file(dir.file("a"), "z");
  ASSERT_EQ(file.size(), 3U);
  EXPECT_EQ(file.data()[2], 'c');
}

TEST(FilesTest, MappedFileMoves) {
  const TempDir dir;
  spill(dir.file("a"), "abc");
  spill(dir.file("b"), "xy");
  MappedFile first(dir.file("a"));
  MappedFile second(std::move(first));
  EXPECT_EQ(second.size(), 3U);
  second = MappedFile(dir.file("b"));
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second.data()[0], 'x');
}

TEST(FilesTest, MappedFileOfNothing) {
  const TempDir dir;
  spill(dir.file("empty"), "");
  const MappedFile file(dir.file("empty"));
  EXPECT_EQ(file.size(), 0U);
  EXPECT_EQ(file.data(), nullptr);
}

TEST(FilesTest, MappedFileRefusesWhatIsNoFile) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { MappedFile file(dir.file("no")); }).message(),
            dir.file("no") + ": cannot open for reading: No such file or directory");
  EXPECT_EQ(error_of([&] { MappedFile file(dir.path()); }).message(),
            dir.path() + ": cannot read: Is a directory");
  const Error device = error_of([] { MappedFile file("/dev/null"); });
  EXPECT_EQ(device.code(), ExitCode::io);
  EXPECT_NE(device.message().find("expected a regular file"), std::string::npos);
  ASSERT_EQ(::mkfifo(dir.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { MappedFile file(dir.file("pipe")); }).code(),
            ExitCode::io);  // does not hang
}

TEST(FilesTest, Exists) {
  const TempDir dir;
  EXPECT_FALSE(exists(dir.file("a")));
  spill(dir.file("a"), "");
  EXPECT_TRUE(exists(dir.file("a")));
  EXPECT_TRUE(exists(dir.path()));
}

}  // namespace
}  // namespace rondo
