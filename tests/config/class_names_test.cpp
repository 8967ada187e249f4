// Class names in files: both kinds of lines, which lines are skipped, writing and reading back.
#include "rondo/config/class_names.h"

#include <gtest/gtest.h>

#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::spill;
using testing::TempDir;
using Texts = std::vector<std::string>;

TEST(ClassNamesFile, IdsWithTitlesOrTitlesAlone) {
  const ClassNames names =
      parse_class_names("n01440764\ttench, Tinca tinca\r\n\ngoldfish\nn3\t\n", "here");
  EXPECT_EQ(names.ids, Texts({"n01440764", "goldfish", "n3"}));
  EXPECT_EQ(names.titles, Texts({"tench, Tinca tinca", "goldfish", ""}));
  EXPECT_EQ(names.count(), 3);
}

TEST(ClassNamesFile, ReadsBackWhatItWrote) {
  const ClassNames names = {{"a", "b"}, {"an apple", "b"}};
  EXPECT_EQ(dump_class_names(names), "a\tan apple\nb\tb\n");
  const ClassNames again = parse_class_names(dump_class_names(names), "here");
  EXPECT_EQ(again.ids, names.ids);
  EXPECT_EQ(again.titles, names.titles);
}

TEST(ClassNamesFile, NoClassesAreRefused) {
  const Error error = error_of([] { parse_class_names("\n\n", "names.txt"); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_EQ(error.message(), "names.txt: expected class names, got none");
  const TempDir folder;
  EXPECT_EQ(error_of([&] { read_class_names(folder.file("none")); }).code(), ExitCode::io);
  spill(folder.file("two"), "a\nb");
  EXPECT_EQ(read_class_names(folder.file("two")).ids, Texts({"a", "b"}));
}

}  // namespace
}  // namespace rondo
