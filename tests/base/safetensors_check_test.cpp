// Damage done after writing is detected, and so are values that are not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "rondo/base/safetensors.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::slurp;
using testing::spill;
using testing::TempDir;

using Metadata = std::map<std::string, std::string>;

const std::vector<float> kSomeWeights = {1.5F, -2.0F, 0.25F, 8.0F, 0.0F, 3.0F};
const std::vector<int64_t> kSomeCounts = {7, -1};

std::vector<TensorRef> some_tensors() {
  return {{"counts", DType::i64, {2}, kSomeCounts.data()},
          {"none", DType::f32, {0, 4}, nullptr},
          {"weight", DType::f32, {2, 3}, kSomeWeights.data()}};
}

// Everything visible in a file except its checksum, as one text.
std::string contents_of(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::string all;
  for (const auto& [key, value] : file.metadata()) {
    if (value.rfind("xxh3:", 0) != 0) all += key + "=" + value + "\n";
  }
  for (const TensorEntry& entry : file.entries()) {
    all += entry.name + dtype_name(entry.dtype);
    for (const int64_t extent : entry.shape) all += " " + std::to_string(extent);
    all.append(reinterpret_cast<const char*>(file.bytes(entry)), entry.end - entry.begin);
  }
  return all;
}

TEST(SafetensorsChecksumTest, NoBitChangesUnnoticed) {
  const TempDir folder;
  const std::string path = folder.file("a");
  write_safetensors(path, some_tensors(), {{"rondo.config", "width = 3"}}, Checksum::xxh3);
  SafetensorsFile::open(path).verify();
  const std::string whole = slurp(path);
  const std::string contents = contents_of(path);
  ASSERT_EQ(SafetensorsFile::open(path).metadata().count(kFileChecksumKey), 1U);
  int64_t mismatches = 0;
  for (size_t at = 0; at < 8 * whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at / 8] = static_cast<char>(damaged[at / 8] ^ (1 << (at % 8)));
    spill(path, damaged);
    try {
      SafetensorsFile::open(path).verify();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input) << error.what();
      if (error.message().find("checksum mismatch (expected xxh3:") != std::string::npos) {
        EXPECT_EQ(error.message().rfind(path + ": ", 0), 0U) << error.message();
        ++mismatches;
      }
      continue;
    }
    EXPECT_EQ(contents_of(path), contents)
        << "bit " << at;  // no checksum is left, or a space changed
  }
  EXPECT_GE(mismatches, 8 * static_cast<int64_t>(kSomeWeights.size() * sizeof(float)));
}

TEST(SafetensorsChecksumTest, CoversEverythingButItself) {
  const TempDir folder;
  const auto checksum = [&](const std::vector<TensorRef>& tensors, const Metadata& metadata) {
    write_safetensors(folder.file("a"), tensors, metadata, Checksum::xxh3);
    const SafetensorsFile file = SafetensorsFile::open(folder.file("a"));
    file.verify();
    return file.metadata().at(kFileChecksumKey);
  };
  const std::string first = checksum(some_tensors(), {});
  EXPECT_EQ(checksum(some_tensors(), {}), first);
  EXPECT_EQ(checksum(some_tensors(), {{kFileChecksumKey, "old"}}), first);
  EXPECT_NE(checksum(some_tensors(), {{"a", "b"}}), first);
  EXPECT_NE(checksum(some_tensors(), {{"a", "b"}}), checksum(some_tensors(), {{"ab", ""}}));
  std::vector<TensorRef> changed = some_tensors();
  changed[2].name = "weighs";
  EXPECT_NE(checksum(changed, {}), first);
  changed = some_tensors();
  changed[2].shape = {3, 2};
  EXPECT_NE(checksum(changed, {}), first);
  changed = some_tensors();
  changed[2].dtype = DType::i32;
  EXPECT_NE(checksum(changed, {}), first);
  EXPECT_EQ(checksum({}, {}).size(), first.size());
}

TEST(SafetensorsChecksumTest, FilesWithoutOnePass) {
  const TempDir folder;
  write_safetensors(folder.file("a"), some_tensors(), {{"format", "pt"}});
  const SafetensorsFile file = SafetensorsFile::open(folder.file("a"));
  EXPECT_EQ(file.metadata().count(kFileChecksumKey), 0U);
  file.verify();
}

// A `bad` value at any position of a row of ones is found there, whatever the alignment of the row.
template <class Number>
void expect_found(DType dtype, Number one, Number bad) {
  for (const size_t count : {1U, 7U, 4096U, 9001U}) {
    for (const size_t at : {size_t{0}, count / 2, count - 1}) {
      std::vector<Number> row(count, one);
      std::vector<uint8_t> memory(count * sizeof(Number) + 1);
      const auto look = [&](size_t offset) {
        std::memcpy(memory.data() + offset, row.data(), count * sizeof(Number));
        return first_non_finite(dtype, memory.data() + offset, static_cast<int64_t>(count));
      };
      EXPECT_FALSE(look(0).has_value());
      row[at] = bad;
      EXPECT_EQ(look(0), static_cast<int64_t>(at)) << dtype_name(dtype);
      EXPECT_EQ(look(1), static_cast<int64_t>(at)) << dtype_name(dtype);
      row[count - 1] = bad;
      EXPECT_EQ(look(0), static_cast<int64_t>(at)) << "the first of two";
    }
  }
}

TEST(SafetensorsFiniteTest, FindsTheFirstNumberThatIsNone) {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const float bad : {infinite, -infinite, std::nanf("")}) {
    expect_found<float>(DType::f32, 1.0F, bad);
    expect_found<double>(DType::f64, 1.0, bad);
  }
  for (const uint16_t bad : {0x7C00, 0xFC00, 0x7E00}) {
    expect_found<uint16_t>(DType::f16, 0x3C00, bad);
  }
  for (const uint16_t bad : {0x7F80, 0xFF80, 0x7FC0}) {
    expect_found<uint16_t>(DType::bf16, 0x3F80, bad);
  }
  const std::vector<float> large = {std::numeric_limits<float>::max(),
                                    -std::numeric_limits<float>::max(),
                                    std::numeric_limits<float>::denorm_min(), 0.0F};
  EXPECT_FALSE(first_non_finite(DType::f32, large.data(), 4).has_value());
  const std::vector<int64_t> all_bits = {-1, -1};
  EXPECT_FALSE(first_non_finite(DType::i64, all_bits.data(), 2).has_value());
  EXPECT_FALSE(first_non_finite(DType::f32, nullptr, 0).has_value());
}

}  // namespace
}  // namespace rondo
