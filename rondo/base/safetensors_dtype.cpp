// Element types of safetensors, and shape arithmetic.
#include "rondo/base/safetensors_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

struct DTypeRow {
  DType dtype;
  const char* name;
  int64_t size;
};

constexpr std::array<DTypeRow, 10> kDTypes = {{
    {DType::f64, "F64", 8},
    {DType::f32, "F32", 4},
    {DType::f16, "F16", 2},
    {DType::bf16, "BF16", 2},
    {DType::i64, "I64", 8},
    {DType::i32, "I32", 4},
    {DType::i16, "I16", 2},
    {DType::i8, "I8", 1},
    {DType::u8, "U8", 1},
    {DType::boolean, "BOOL", 1},
}};

const DTypeRow& dtype_row(DType dtype) {
  const auto* row = std::find_if(kDTypes.begin(), kDTypes.end(),
                                 [&](const DTypeRow& r) { return r.dtype == dtype; });
  RONDO_ASSERT(row != kDTypes.end());
  return *row;
}

}  // namespace

int64_t dtype_size(DType dtype) { return dtype_row(dtype).size; }

const char* dtype_name(DType dtype) { return dtype_row(dtype).name; }

int64_t TensorEntry::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    count *= extent;  // cannot overflow: checked when the entry was created
  }
  return count;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (name == row.name) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

std::string supported_dtypes() {
  std::vector<std::string> names;
  for (const DTypeRow& row : kDTypes) {
    names.emplace_back(row.name);
  }
  return join(names, ", ");
}

bool is_foreign_dtype(std::string_view name) {
  constexpr std::string_view kWhole[] = {"U16", "U32", "U64", "C64", "F4"};
  constexpr std::string_view kFamilies[] = {"F8_", "F6_", "F4_"};
  const bool whole = std::find(std::begin(kWhole), std::end(kWhole), name) != std::end(kWhole);
  return whole || std::any_of(std::begin(kFamilies), std::end(kFamilies),
                              [&](std::string_view f) { return name.substr(0, f.size()) == f; });
}

std::optional<int64_t> checked_bytes(DType dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = dtype_size(dtype);
  bool empty = false;
  for (const int64_t extent : shape) {
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : bytes;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> extents;
  for (const int64_t extent : shape) {
    extents.push_back(std::to_string(extent));
  }
  return "[" + join(extents, ", ") + "]";
}

}  // namespace rondo
