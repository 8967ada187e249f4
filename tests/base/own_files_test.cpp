// Rondo's own files are found relative to its library.
#include "rondo/base/own_files.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace rondo {
namespace {

namespace fs = std::filesystem;

TEST(OwnFiles, AreFoundFromTheLibraryNotTheProgram) {
  const fs::path folder = library_folder();
  EXPECT_TRUE(folder.is_absolute()) << folder;
  EXPECT_TRUE(fs::exists(folder / "librondo_base.so")) << folder;
}

TEST(OwnFiles, ModulesOfABuildTreeAreBesideTheLibrary) {
  EXPECT_EQ(module_path("librondo_sentencepiece.so"),
            library_folder() + "/librondo_sentencepiece.so");
  EXPECT_TRUE(fs::exists(module_path("librondo_sentencepiece.so")));
}

}  // namespace
}  // namespace rondo
