// More tests of rondo/base/safetensors.h: layout of tensors in the file, systematic damage, hostile
// headers, and what the writer rejects.
#include <gtest/gtest.h>

#include <string>

#include "rondo/base/limits.h"
#include "rondo/base/safetensors.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::slurp;
using testing::spill;
using testing::TempDir;

std::string framed(const std::string& header, const std::string& data = {}) {
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file.push_back(static_cast<char>(uint64_t{header.size()} >> (8 * i)));
  }
  return file + header + data;
}

SafetensorsHeader parse_damaged(const std::string& file) {
  return parse_safetensors_header(reinterpret_cast<const uint8_t*>(file.data()), file.size(), "f");
}

std::string two_tensors(const std::string& first, const std::string& second,
                        const std::string& data) {
  return framed(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + first +
                    R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}",
                data);
}

std::string valid_file() {
  const TempDir dir;
  const float weights[] = {1, 2, 3, 4, 5, 6};
  write_safetensors(dir.file("a"),
                    {{"w", DType::f32, {2, 3}, weights},
                     {"e", DType::i64, {0}, nullptr},
                     {"u", DType::u8, {3}, "xyz"}},
                    {{"format", "rondo"}});
  return slurp(dir.file("a"));
}

TEST(SafetensorsDamageTest, TensorsMustTileTheData) {
  const auto message = [](const std::string& first, const std::string& second,
                          const std::string& data) {
    return error_of([&] { parse_damaged(two_tensors(first, second, data)); }).message();
  };
  EXPECT_EQ(message("[0,2]", "[3,5]", "12345"),
            "f: tensor 'b': expected its data to begin at byte 2, where the one before ends, got 3 "
            "(there is a gap)");
  EXPECT_EQ(message("[0,2]", "[1,3]", "123"),
            "f: tensor 'b': expected its data to begin at byte 2, where the one before ends, got 1 "
            "(they overlap)");
  EXPECT_EQ(message("[0,2]", "[0,2]", "12"),
            "f: tensor 'b': expected its data to begin at byte 2, where the one before ends, got 0 "
            "(they overlap)");
  EXPECT_EQ(message("[0,2]", "[2,4]", "123"),
            "f: tensor 'b': expected its data to end within the file's 3 bytes of data, got 4");
  EXPECT_EQ(message("[0,2]", "[2,4]", "12345"),
            "f: expected 4 bytes of data after the header, got 5");
  EXPECT_NO_THROW(parse_damaged(two_tensors("[2,4]", "[0,2]", "1234")));
}

TEST(SafetensorsDamageTest, EveryTruncationIsRefused) {
  const std::string file = valid_file();
  EXPECT_NO_THROW(parse_damaged(file));
  for (size_t size = 0; size < file.size(); ++size) {
    // A copy of exactly this size, so that a sanitizer detects any read beyond it.
    const std::vector<char> cut(file.begin(), file.begin() + static_cast<int64_t>(size));
    const Error error = error_of(
        [&] { parse_safetensors_header(reinterpret_cast<const uint8_t*>(cut.data()), size, "f"); });
    EXPECT_EQ(error.code(), ExitCode::bad_input) << size;
  }
  EXPECT_THROW(parse_damaged(file + "x"), Error);
}

TEST(SafetensorsDamageTest, NoFlippedBitEscapesTheFile) {
  const std::string file = valid_file();
  int64_t accepted = 0;
  int64_t refused_count = 0;
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      const SafetensorsHeader header = parse_damaged(damaged);
      ++accepted;
      for (const TensorEntry& entry : header.entries) {
        ASSERT_LE(entry.begin, entry.end);
        ASSERT_LE(entry.end, damaged.size() - header.data_begin);
        ASSERT_EQ(entry.end - entry.begin,
                  static_cast<uint64_t>(entry.elements() * dtype_size(entry.dtype)));
      }
    } catch (const Error& error) {
      ++refused_count;
      ASSERT_EQ(error.code(), ExitCode::bad_input);
    }
  }
  EXPECT_GT(accepted, 27 * 8 - 1);  // flips in the data itself cannot be detected
  EXPECT_GT(refused_count, 500);
}

TEST(SafetensorsDamageTest, HostileHeadersStayCheap) {
  const std::string deep(5'000'000, '[');
  EXPECT_EQ(error_of([&] { parse_damaged(framed("{\"a\":{\"shape\":" + deep)); }).message(),
            "f: expected a header nested at most 3 deep, got deeper");
  std::string objects;
  for (int i = 0; i < 100000; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_THROW(parse_damaged(framed(objects)), Error);
  std::string metadata = "{\"__metadata__\":{";
  for (size_t i = 0; i <= kMaxMetadataEntries; ++i) {
    metadata += "\"" + std::to_string(i) + "\":\"\",";
  }
  EXPECT_EQ(error_of([&] { parse_damaged(framed(metadata)); }).message(),
            "f: __metadata__: expected at most 100,000 entries, got more");
  // A token of megabytes must not become a message of megabytes.
  const std::string token(5'000'000, 'z');
  EXPECT_LT(error_of([&] { parse_damaged(framed("{\"" + token)); }).message().size(), 1000U);
  EXPECT_LT(error_of([&] { parse_damaged(framed("{\"" + token + "\":1}")); }).message().size(),
            1000U);
}

TEST(SafetensorsDamageTest, WriterRefusesWhatTheReaderWould) {
  const TempDir dir;
  spill(dir.file("a"), "old");
  const auto message = [&](const std::vector<TensorRef>& tensors,
                           const std::map<std::string, std::string>& metadata = {}) {
    const Error error = error_of([&] { write_safetensors(dir.file("a"), tensors, metadata); });
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    return error.message().substr(dir.file("a").size());
  };
  const TensorRef good = {"w", DType::u8, {1}, "x"};
  EXPECT_EQ(message({good, good}), ": cannot write: tensor 'w' is given twice");
  EXPECT_EQ(message({{"__metadata__", DType::u8, {1}, "x"}}),
            ": cannot write: tensor '__metadata__': the name is reserved");
  EXPECT_EQ(message({{"\xFF", DType::u8, {1}, "x"}}),
            ": cannot write: tensor '?': expected a UTF-8 name of at most 4096 bytes");
  EXPECT_EQ(message({{"w", DType::u8, {-1}, "x"}}),
            ": cannot write: tensor 'w': expected extents of at least 0, got shape [-1]");
  EXPECT_EQ(message({{"w", DType::u8, std::vector<int64_t>(9, 1), "x"}}),
            ": cannot write: tensor 'w': expected at most 8 dimensions, got 9");
  EXPECT_EQ(message({{"w", DType::u8, {INT64_MAX, 2}, "x"}}),
            ": cannot write: tensor 'w': shape [9223372036854775807, 2] is too large to address");
  EXPECT_EQ(message({good}, {{"k", "\x80"}}),
            ": cannot write: metadata 'k': expected UTF-8, and a key of at most 4096 bytes");
  EXPECT_EQ(slurp(dir.file("a")), "old");
  EXPECT_EQ(dir.count(), 1);
}

TEST(SafetensorsDamageTest, AFullDiskIsAnIoError) {
  const std::string data(1 << 20, 'x');
  const Error error = error_of([&] {
    write_safetensors("/dev/full", {{"w", DType::u8, {1 << 20}, data.data()}});
  });
  EXPECT_EQ(error.code(), ExitCode::io);
  EXPECT_NE(error.message().find("No space left on device"), std::string::npos);
}

TEST(SafetensorsDamageDeathTest, BytesOfAForeignEntryAreNotRead) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const TempDir dir;
  write_safetensors(dir.file("a"), {{"w", DType::u8, {3}, "xyz"}});
  const SafetensorsFile file = SafetensorsFile::open(dir.file("a"));
  TensorEntry foreign = file.entries()[0];
  foreign.end = 1000;
  EXPECT_DEATH(file.bytes(foreign), "assertion failed");
}

}  // namespace
}  // namespace rondo
