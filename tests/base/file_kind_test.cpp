// Files are recognized by their contents, not by their names.
#include "rondo/base/file_kind.h"

#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

using namespace std::string_literals;
using testing::TempDir;

TEST(FileKind, ByContent) {
  const std::vector<std::pair<std::string, FileKind>> cases = {
      {"\xFF\xD8\xFF\xE0 JFIF"s, FileKind::image},
      {"\x89PNG\r\n\x1A\n...."s, FileKind::image},
      {"RIFF\x10\0\0\0WEBPVP8 "s, FileKind::image},
      {"PK\x03\x04........archive/data.pkl"s, FileKind::pytorch},
      {"\x80\x02}q\0."s, FileKind::pytorch},
      {"PK\x03\x04........[Content_Types].xml"s, FileKind::document},
      {"PK\x03\x04........readme.txt"s, FileKind::archive},
      {"\x40\0\0\0\0\0\0\0{\"a\": 1}"s, FileKind::safetensors},
      {"\x1F\x8B\x08\0"s, FileKind::compressed},
      {"\x7F"
       "ELF\x02\x01"s,
       FileKind::program},
      {"%PDF-1.7"s, FileKind::document},
      {"\n\x0E\n\x05<unk>\x15\0\0\0\0"s, FileKind::tokenizer},
      {std::string(257, 'x') + "ustar\0"s, FileKind::archive},
      {"\x01\x02\x03\0\0\0\0"s, FileKind::binary},
      {""s, FileKind::empty},
      {"# a comment\n[model]\nkind = \"vision\"\n"s, FileKind::toml},
      {"Call me Ishmael. Some years ago\nnever mind how long = precisely\n"s, FileKind::text},
      {"Привет, мир\n"s, FileKind::text},
  };
  for (const auto& [bytes, kind] : cases) {
    EXPECT_EQ(look_at_bytes(bytes, "name").kind, kind) << bytes.substr(0, 12);
  }
}

TEST(FileKind, WhatToDo) {
  const TempDir folder;
  testing::spill(folder.file("photo"), "\xFF\xD8\xFF\xE0 JFIF");
  const FileLook look = look_at_file(folder.file("photo"));
  EXPECT_EQ(look.what, "a JPEG image");
  EXPECT_NE(advice_for(look, "photo", "classify").find("the model comes first"), std::string::npos);
  EXPECT_NE(advice_for(look, "photo", "train").find("class"), std::string::npos);
  EXPECT_EQ(look_at_file(folder.path()).kind, FileKind::folder);
  EXPECT_EQ(look_at_file(folder.file("nothing")).kind, FileKind::missing);
  EXPECT_EQ(look_at_file("/dev/null").kind, FileKind::binary);
}

}  // namespace
}  // namespace rondo
