// Mapped files that are truncated: checking gives an Error, an access a message and exit code 4.
#include "rondo/base/lost_mapping.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "rondo/base/files.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::spill;
using testing::TempDir;

constexpr size_t kBytes = 3 * 4096;

TEST(LostMapping, IsAnErrorWhenAskedFor) {
  const TempDir folder;
  const std::string path = folder.file("data");
  spill(path, std::string(kBytes, 'x'));
  MappedFile file(path);
  file.require_whole(path);
  MappedFile moved = std::move(file);
  std::filesystem::resize_file(path, kBytes + 1);  // growing does not matter
  moved.require_whole(path);
  std::filesystem::resize_file(path, 5);
  const Error error = error_of([&] { moved.require_whole(path); });
  EXPECT_EQ(error.code(), ExitCode::io);
  EXPECT_EQ(error.message(), path + ": was truncated while in use: expected 12288 bytes, got 5");
  MappedFile().require_whole("nothing");
}

// A new file of the same name does not affect readers of the old one.
TEST(LostMapping, ReplacedFilesStayWhole) {
  const TempDir folder;
  const std::string path = folder.file("data");
  spill(path, std::string(kBytes, 'x'));
  const MappedFile file(path);
  write_file(path, "short");
  file.require_whole(path);
  EXPECT_EQ(file.data()[kBytes - 1], 'x');
}

TEST(LostMapping, TouchedIsAMessageAndExitCodeFour) {
  const TempDir folder;
  const std::string path = folder.file("data");
  spill(path, std::string(kBytes, 'x'));
  EXPECT_EXIT(
      {
        report_lost_mappings();
        const MappedFile other(folder.file("data"));
        const MappedFile file(path);
        std::filesystem::resize_file(path, 1);
        std::_Exit(*const_cast<const volatile uint8_t*>(file.data() + kBytes - 1));
      },
      ::testing::ExitedWithCode(4), "rondo: .*/data: was truncated while being read");
}

TEST(LostMapping, OtherBusErrorsKillAsEver) {
  EXPECT_EXIT(
      {
        report_lost_mappings();
        std::raise(SIGBUS);
        std::raise(SIGBUS);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace rondo
