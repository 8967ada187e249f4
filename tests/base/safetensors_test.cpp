// Tests of rondo/base/safetensors.h: round trips, and files with every kind of damage.
#include "rondo/base/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "rondo/base/limits.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::slurp;
using testing::spill;
using testing::TempDir;

constexpr DType kAllDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                                DType::i32, DType::i16, DType::i8,  DType::u8,   DType::boolean};

std::string length_prefix(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>(length >> (8 * i)));
  }
  return bytes;
}

std::string make_file(const std::string& header, const std::string& data = {}) {
  return length_prefix(header.size()) + header + data;
}

SafetensorsHeader parse_bytes(const std::string& file) {
  return parse_safetensors_header(reinterpret_cast<const uint8_t*>(file.data()), file.size(), "f");
}

// The message of the Error{bad_input} that reading a file of these parts must throw.
std::string refused(const std::string& header, const std::string& data = {}) {
  const Error error = error_of([&] { parse_bytes(make_file(header, data)); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  return error.message();
}

// A header with one tensor 'a' of the given fields.
std::string one_tensor(const std::string& fields) { return "{\"a\":{" + fields + "}}"; }

std::string small_file() {
  return make_file(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}  )",
      "12345678x");
}

TEST(SafetensorsTest, SizesAndNames) {
  EXPECT_EQ(dtype_size(DType::f64), 8);
  EXPECT_EQ(dtype_size(DType::bf16), 2);
  EXPECT_EQ(dtype_size(DType::boolean), 1);
  EXPECT_STREQ(dtype_name(DType::bf16), "BF16");
  EXPECT_STREQ(dtype_name(DType::boolean), "BOOL");
}

TEST(SafetensorsTest, ReadsASmallFile) {
  const SafetensorsHeader header = parse_bytes(small_file());
  ASSERT_EQ(header.entries.size(), 2U);
  EXPECT_EQ(header.entries[0].name, "a");
  EXPECT_EQ(header.entries[0].dtype, DType::f32);
  EXPECT_EQ(header.entries[0].shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(header.entries[0].elements(), 2);
  EXPECT_EQ(header.entries[1].elements(), 1);  // a scalar
  EXPECT_EQ(header.entries[1].begin, 8U);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.data_begin, small_file().size() - 9);
}

TEST(SafetensorsTest, ReadsEmptyFiles) {
  EXPECT_TRUE(parse_bytes(make_file("{}")).entries.empty());
  EXPECT_TRUE(parse_bytes(make_file("{\"__metadata__\":{}}     ")).metadata.empty());
}

TEST(SafetensorsTest, EntriesComeInFileOrder) {
  const SafetensorsHeader header =
      parse_bytes(make_file(R"({"z":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                            R"("y":{"dtype":"U8","shape":[0,5],"data_offsets":[1,1]},)"
                            R"("x":{"data_offsets":[0,1],"shape":[1],"dtype":"U8"}})",
                            "abc"));
  ASSERT_EQ(header.entries.size(), 3U);
  EXPECT_EQ(header.entries[0].name, "x");
  EXPECT_EQ(header.entries[1].name, "y");
  EXPECT_EQ(header.entries[1].elements(), 0);
  EXPECT_EQ(header.entries[2].name, "z");
}

TEST(SafetensorsTest, RoundTripOfEveryType) {
  const TempDir dir;
  std::vector<std::string> data;
  std::vector<TensorRef> tensors;
  for (const DType dtype : kAllDTypes) {
    std::string bytes(static_cast<size_t>(6 * dtype_size(dtype)), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>(i * 37 + data.size());
    }
    data.push_back(bytes);
  }
  for (size_t i = 0; i < std::size(kAllDTypes); ++i) {
    tensors.push_back(
        {std::string("t.") + dtype_name(kAllDTypes[i]), kAllDTypes[i], {2, 3}, data[i].data()});
  }
  const std::map<std::string, std::string> metadata = {
      {"config", "[model]\nname = \"caf\xC3\xA9\"\n"}, {"zero", std::string("a\0b", 3)}, {"", ""}};
  write_safetensors(dir.file("a"), tensors, metadata);
  SafetensorsFile opened = SafetensorsFile::open(dir.file("a"));
  const SafetensorsFile file = std::move(opened);
  EXPECT_EQ(file.path(), dir.file("a"));
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorEntry& entry = file.entries()[i];  // the order is preserved
    EXPECT_EQ(entry.name, tensors[i].name);
    EXPECT_EQ(entry.dtype, tensors[i].dtype);
    EXPECT_EQ(entry.shape, tensors[i].shape);
    EXPECT_EQ(entry.end - entry.begin, data[i].size());
    EXPECT_EQ(std::memcmp(file.bytes(entry), data[i].data(), data[i].size()), 0) << entry.name;
    EXPECT_EQ(file.find(entry.name), &entry);
  }
  EXPECT_EQ(file.find("t.F3"), nullptr);
  EXPECT_EQ(file.find(""), nullptr);
}

TEST(SafetensorsTest, WritesTheBytesTheFormatSays) {
  const TempDir dir;
  write_safetensors(dir.file("a"), {{"w", DType::u8, {2, 1}, "hi"}}, {{"k", "v"}});
  std::string header =
      R"({"__metadata__":{"k":"v"},"w":{"dtype":"U8","shape":[2, 1],"data_offsets":[0,2]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(slurp(dir.file("a")), make_file(header, "hi"));
}

TEST(SafetensorsTest, DataStartsAligned) {
  const TempDir dir;
  for (size_t length = 1; length <= 9; ++length) {
    const double value = 2.5;
    write_safetensors(dir.file("a"), {{std::string(length, 'n'), DType::f64, {}, &value}});
    const SafetensorsFile file = SafetensorsFile::open(dir.file("a"));
    const uint8_t* bytes = file.bytes(file.entries()[0]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 8, 0U);
    EXPECT_EQ(std::memcmp(bytes, &value, sizeof(value)), 0);
  }
}

TEST(SafetensorsTest, EmptyTensorsAndFilesRoundTrip) {
  const TempDir dir;
  write_safetensors(dir.file("a"), {});
  EXPECT_TRUE(SafetensorsFile::open(dir.file("a")).entries().empty());
  const float one = 1;
  write_safetensors(dir.file("a"), {{"e", DType::f32, {0, 7}, nullptr},
                                    {"f", DType::f32, {1}, &one},
                                    {"g", DType::f32, {0}, nullptr}});
  const SafetensorsFile file = SafetensorsFile::open(dir.file("a"));
  ASSERT_EQ(file.entries().size(), 3U);
  EXPECT_EQ(file.find("e")->elements(), 0);
  EXPECT_EQ(file.find("g")->begin, 4U);
  EXPECT_EQ(file.find("f")->elements(), 1);
}

TEST(SafetensorsTest, AwkwardNamesRoundTrip) {
  const TempDir dir;
  const std::vector<std::string> names = {
      "", "a\"b\\c", "tab\t", "caf\xC3\xA9", std::string("nul\0x", 5), "dtype"};
  std::vector<TensorRef> tensors;
  for (const std::string& name : names) {
    tensors.push_back({name, DType::u8, {1}, "x"});
  }
  write_safetensors(dir.file("a"), tensors);
  const SafetensorsFile file = SafetensorsFile::open(dir.file("a"));
  for (const std::string& name : names) {
    EXPECT_NE(file.find(name), nullptr) << name;
  }
}

TEST(SafetensorsTest, ReadsAFileMadeByAnotherProgram) {
  const auto path = std::filesystem::path(__FILE__).parent_path().parent_path() / "fixtures" /
                    "t5_buckets.safetensors";
  const SafetensorsFile file = SafetensorsFile::open(path.string());
  EXPECT_FALSE(file.entries().empty());
  uint64_t end = 0;
  for (const TensorEntry& entry : file.entries()) {
    EXPECT_EQ(entry.begin, end);
    end = entry.end;
  }
}

TEST(SafetensorsTest, OpeningWhatIsNotThere) {
  EXPECT_EQ(error_of([] { SafetensorsFile::open("/no/such"); }).code(), ExitCode::io);
  const TempDir dir;
  spill(dir.file("a"), "");
  EXPECT_EQ(error_of([&] { SafetensorsFile::open(dir.file("a")); }).message(),
            dir.file("a") + ": expected a safetensors file of at least 8 bytes, got 0");
}

TEST(SafetensorsTest, BadFrames) {
  EXPECT_EQ(error_of([] { parse_bytes(length_prefix(100'000'001) + "{}"); }).message(),
            "f: expected a header of at most 100000000 bytes, got 100000001");
  EXPECT_EQ(error_of([] { parse_bytes(length_prefix(UINT64_MAX) + "{}"); }).message(),
            "f: expected a header of at most 100000000 bytes, got 18446744073709551615");
  EXPECT_EQ(error_of([] { parse_bytes(length_prefix(3) + "{}"); }).message(),
            "f: expected a header of 3 bytes, got 2 bytes to the end of the file");
  EXPECT_EQ(refused(""), "f: expected the header to start with '{', got an empty header");
  EXPECT_EQ(refused(" {}"), "f: expected the header to start with '{', got byte 0x20");
  EXPECT_EQ(refused("[]"), "f: expected the header to start with '{', got byte 0x5b");
  EXPECT_EQ(refused("{}", "x"), "f: expected 0 bytes of data after the header, got 1");
}

TEST(SafetensorsTest, BadJson) {
  const std::string start = "f: expected a JSON header, got malformed JSON at byte ";
  for (const std::string header : {"{", "{\"a\"", "{\"a\":}", "{} x", "{}{}", "{'a':1}", "{,}",
                                   "{\"__metadata__\":{\"a\":\"b\",}}", "{\"a\":{\"shape\":[01]}}",
                                   "{\"a\":{\"shape\":[1e999]}}", "{}/**/", "{\"\\ud800\":1}"}) {
    EXPECT_EQ(refused(header).substr(0, start.size()), start) << header;
  }
  // Anything quoted from the file must be safe to print.
  const std::string message = refused("{\"\xFF\x1b\":1}");
  EXPECT_EQ(message.substr(0, start.size()), start);
  EXPECT_NE(message.find("UTF-8"), std::string::npos) << message;
  EXPECT_EQ(message.find('\xFF'), std::string::npos);
  EXPECT_EQ(refused(std::string("{}\0{", 4)),
            "f: expected a JSON header, got a zero byte at byte 3 of it");
}

TEST(SafetensorsTest, BadMetadata) {
  EXPECT_EQ(refused(R"({"__metadata__":{"a":1}})"), "f: __metadata__: 'a': expected text, got 1");
  EXPECT_EQ(refused(R"({"__metadata__":{"a":{}}})"),
            "f: __metadata__: 'a': expected text, got an object");
  EXPECT_EQ(refused(R"({"__metadata__":{"a":null}})"),
            "f: __metadata__: 'a': expected text, got null");
  EXPECT_EQ(refused(R"({"__metadata__":{"a":"x","a":"y"}})"),
            "f: __metadata__: 'a' is given twice");
  EXPECT_EQ(refused(R"({"__metadata__":"x"})"), "f: '__metadata__': expected an object, got \"x\"");
  EXPECT_EQ(refused(R"({"__metadata__":{},"__metadata__":{}})"), "f: __metadata__ is given twice");
}

TEST(SafetensorsTest, BadEntries) {
  const std::string rest = R"(,"shape":[1],"data_offsets":[0,1])";
  EXPECT_EQ(refused(R"({"a":3})"), "f: 'a': expected an object, got 3");
  EXPECT_EQ(refused(R"({"a":[3]})"), "f: 'a': expected an object, got a list");
  EXPECT_EQ(refused(one_tensor("")), "f: tensor 'a': dtype is missing");
  EXPECT_EQ(refused(one_tensor(R"("dtype":"U8")")), "f: tensor 'a': shape is missing");
  EXPECT_EQ(refused(one_tensor(R"("dtype":"U8","shape":[])")),
            "f: tensor 'a': data_offsets is missing");
  EXPECT_EQ(refused(one_tensor(R"("dtype":"U8","dtype":"U8")")),
            "f: tensor 'a': dtype is given twice");
  EXPECT_EQ(refused(one_tensor(R"("dtype":"U8","device":"cpu")")),
            "f: tensor 'a': expected dtype, shape and data_offsets, got 'device'");
  EXPECT_EQ(refused(one_tensor("\"dtype\":8" + rest)),
            "f: tensor 'a': dtype: expected text, got 8");
  EXPECT_EQ(refused(one_tensor("\"dtype\":{}" + rest)),
            "f: tensor 'a': dtype: expected text, got an object");
  EXPECT_EQ(refused(one_tensor("\"dtype\":\"f32\"" + rest)),
            "f: tensor 'a': unknown dtype \"f32\"; expected one of F64, F32, F16, BF16, I64, I32, "
            "I16, I8, U8, BOOL");
  for (const std::string dtype : {"U16", "U32", "U64", "F8_E4M3", "F8_E5M2"}) {
    EXPECT_EQ(refused(one_tensor("\"dtype\":\"" + dtype + "\"" + rest)),
              "f: tensor 'a': dtype " + dtype +
                  " is a safetensors type that Rondo does not "
                  "support; expected one of F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL");
  }
  EXPECT_EQ(refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                    R"("\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                    "xy"),
            "f: tensor 'a' is given twice");
  EXPECT_EQ(refused("{\"" + std::string(kMaxTensorNameBytes + 1, 'n') + "\":{}}").substr(0, 53),
            "f: expected names of at most 4096 bytes, got 4097 in ");
}

TEST(SafetensorsTest, BadShapes) {
  const auto with_shape = [](const std::string& shape) {
    return refused(one_tensor("\"dtype\":\"F32\",\"data_offsets\":[0,4],\"shape\":" + shape),
                   "1234");
  };
  EXPECT_EQ(with_shape("4"), "f: tensor 'a': shape: expected a list of whole numbers, got 4");
  EXPECT_EQ(with_shape("[-1]"),
            "f: tensor 'a': shape: expected whole numbers between 0 and 2^63, got -1");
  EXPECT_EQ(with_shape("[1.0]"),
            "f: tensor 'a': shape: expected whole numbers between 0 and 2^63, got 1.0");
  EXPECT_EQ(with_shape("[\"1\"]"),
            "f: tensor 'a': shape: expected whole numbers between 0 and 2^63, got \"1\"");
  EXPECT_EQ(with_shape("[true]"),
            "f: tensor 'a': shape: expected whole numbers between 0 and 2^63, got true");
  EXPECT_EQ(with_shape("[18446744073709551616]"),
            "f: tensor 'a': shape: expected whole numbers between 0 and 2^63, got "
            "18446744073709551616");
  EXPECT_EQ(with_shape("[9223372036854775808]"),
            "f: tensor 'a': shape: expected extents below 2^63, got 9223372036854775808");
  EXPECT_EQ(with_shape("[1,1,1,1,1,1,1,1,1]"),
            "f: tensor 'a': shape: expected at most 8 dimensions, got more");
  EXPECT_EQ(with_shape("[[1]]"), "f: expected a header nested at most 3 deep, got deeper");
  EXPECT_EQ(with_shape("[4611686018427387904]"),
            "f: tensor 'a': shape [4611686018427387904] of F32 is too large to address");
  // Wraps to exactly 4 bytes in 64 bits.
  EXPECT_EQ(with_shape("[4294967296,4294967296,1]"),
            "f: tensor 'a': shape [4294967296, 4294967296, 1] of F32 is too large to address");
  EXPECT_EQ(with_shape("[4294967296,4294967296,0]"),
            "f: tensor 'a': shape [4294967296, 4294967296, 0] of F32 is too large to address");
  EXPECT_EQ(with_shape("[2]"),
            "f: tensor 'a': expected 8 bytes for shape [2] of F32, got 4 in "
            "data_offsets [0, 4]");
}

TEST(SafetensorsTest, BadOffsets) {
  const auto with_offsets = [](const std::string& offsets) {
    return refused(one_tensor("\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + offsets), "12");
  };
  EXPECT_EQ(with_offsets("{}"),
            "f: tensor 'a': data_offsets: expected a list of 2 whole numbers, got an object");
  EXPECT_EQ(with_offsets("[0]"),
            "f: tensor 'a': data_offsets: expected 2 numbers [begin, end], got 1");
  EXPECT_EQ(with_offsets("[0,1,2]"),
            "f: tensor 'a': data_offsets: expected 2 numbers [begin, end], got more");
  EXPECT_EQ(with_offsets("[0,-2]"),
            "f: tensor 'a': data_offsets: expected whole numbers between 0 and 2^63, got -2");
  EXPECT_EQ(with_offsets("[0,2.0]"),
            "f: tensor 'a': data_offsets: expected whole numbers between 0 and 2^63, got 2.0");
  EXPECT_EQ(with_offsets("[2,0]"),
            "f: tensor 'a': data_offsets: expected begin <= end, got [2, 0]");
  EXPECT_EQ(with_offsets("[1,3]"),
            "f: tensor 'a': expected its data to begin at byte 0, where the one before ends, "
            "got 1 (there is a gap)");
  EXPECT_EQ(with_offsets("[18446744073709551613,18446744073709551615]"),
            "f: tensor 'a': expected its data to begin at byte 0, where the one before ends, "
            "got 18446744073709551613 (there is a gap)");
}

}  // namespace
}  // namespace rondo
