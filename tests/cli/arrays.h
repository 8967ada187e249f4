// Tensors without torch: the contents of the tests' safetensors files, and comparison of outputs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "rondo/base/safetensors.h"

namespace rondo::testing {

struct Array {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  int64_t size() const { return static_cast<int64_t>(bytes.size()) / dtype_size(dtype); }
  std::vector<double> numbers() const;
};

using Arrays = std::map<std::string, Array>;

template <class T>
Array make_array(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  Array array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.bytes.resize(values.size() * sizeof(T));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

inline Array floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return make_array(DType::f32, std::move(shape), values);
}

inline Array whole(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  return make_array(DType::i64, std::move(shape), values);
}

// 0, 1, 2, ... scaled: weights that are all different.
inline Array ramp(std::vector<int64_t> shape, double scale = 1e-3) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(scale * double(i % 997)));
  return floats(std::move(shape), values);
}

template <class T>
std::vector<double> as_doubles(const Array& array) {
  std::vector<T> values(static_cast<size_t>(array.size()));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return {values.begin(), values.end()};
}

inline std::vector<double> Array::numbers() const {
  switch (dtype) {
    case DType::f32:
      return as_doubles<float>(*this);
    case DType::f64:
      return as_doubles<double>(*this);
    case DType::i64:
      return as_doubles<int64_t>(*this);
    case DType::i32:
      return as_doubles<int32_t>(*this);
    case DType::boolean:
      return as_doubles<uint8_t>(*this);
    default:
      throw std::runtime_error("numbers() of an unexpected type");
  }
}

inline Arrays read_arrays(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  Arrays arrays;
  for (const TensorEntry& entry : file.entries()) {
    const uint8_t* bytes = file.bytes(entry);
    const auto count = static_cast<size_t>(entry.end - entry.begin);
    arrays[entry.name] = {entry.dtype, entry.shape, std::vector<uint8_t>(bytes, bytes + count)};
  }
  return arrays;
}

inline void write_arrays(const std::string& path, const Arrays& arrays) {
  std::vector<TensorRef> refs;
  for (const auto& [name, array] : arrays) {
    refs.push_back({name, array.dtype, array.shape, array.bytes.data()});
  }
  write_safetensors(path, refs);
}

// Those whose names begin with `prefix`, with it removed.
inline Arrays below(const Arrays& arrays, const std::string& prefix) {
  Arrays found;
  for (const auto& [name, array] : arrays) {
    if (name.rfind(prefix, 0) == 0) found[name.substr(prefix.size())] = array;
  }
  return found;
}

inline double largest(const Array& array) {
  double most = 0;
  for (const double value : array.numbers()) most = std::max(most, std::abs(value));
  return most;
}

// max |a·scale - b|; if the shapes differ, a test failure and infinity.
inline double max_difference(const Array& a, const Array& b, double scale = 1.0) {
  EXPECT_EQ(a.shape, b.shape);
  if (a.shape != b.shape) return INFINITY;
  const std::vector<double> x = a.numbers();
  const std::vector<double> y = b.numbers();
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = std::abs(x[i] * scale - y[i]);
    most = std::isnan(difference) ? INFINITY : std::max(most, difference);
  }
  return most;
}

}  // namespace rondo::testing
