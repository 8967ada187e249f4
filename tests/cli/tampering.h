// Changing files that the command wrote, as bit rot, a faulty program or an attacker would.
#pragma once

#include <functional>
#include <limits>

#include "tests/cli/arrays.h"
#include "tests/cli/process.h"

namespace rondo::testing {

// Writes the tensors of `from` to `to`, after `change`, with the same metadata but without the
// checksum: a file that appears intact.
inline void tamper(const std::string& from, const std::string& to,
                   const std::function<void(Arrays&)>& change) {
  Arrays arrays = read_arrays(from);
  std::map<std::string, std::string> metadata = SafetensorsFile::open(from).metadata();
  metadata.erase(kFileChecksumKey);
  change(arrays);
  std::vector<TensorRef> refs;
  for (const auto& [name, array] : arrays) {
    refs.push_back({name, array.dtype, array.shape, array.bytes.data()});
  }
  write_safetensors(to, refs, metadata);
}

// `from` with one bit of its data flipped, at the fraction `share` of its length.
inline void flip_bit(const std::string& from, const std::string& to, double share, int bit) {
  std::string whole = slurp(from);
  uint64_t header = 0;
  std::memcpy(&header, whole.data(), sizeof(header));
  const size_t begin = sizeof(header) + header;
  const auto at = begin + static_cast<size_t>(share * static_cast<double>(whole.size() - begin));
  whole[at] = static_cast<char>(whole[at] ^ (1 << bit));
  spill(to, whole);
}

// Sets the middle value of an fp32 tensor to infinity or NaN.
inline void spoil(Array& array, float bad = std::numeric_limits<float>::quiet_NaN()) {
  ASSERT_EQ(array.dtype, DType::f32);
  std::memcpy(array.bytes.data() + array.size() / 2 * 4, &bad, sizeof(bad));
}

}  // namespace rondo::testing
