// Fuzz target for the safetensors parser, which reads untrusted files.
//
//   clang++ -std=c++17 -g -O1 -fsanitize=fuzzer,address,undefined -I.
//   tests/fuzz/safetensors_fuzz.cpp
//     rondo/base/{error,text,files,safetensors,safetensors_check,safetensors_dtype,safetensors_header}.cpp
//     -lfmt
//   ./a.out -max_len=2048 tests/fuzz/corpus/safetensors_fuzz
//
// The fuzzer's input is one whole file. Only rondo::Error may be thrown; whatever is accepted must
// lie inside the file.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rondo/base/error.h"
#include "rondo/base/safetensors.h"

namespace {

volatile uint8_t fuzz_sink = 0;  // keeps the reads from being optimized away

void touch_tensors(const uint8_t* file, uint64_t size, const rondo::SafetensorsHeader& header) {
  RONDO_ASSERT(header.data_begin <= size);
  uint64_t total = 0;
  for (const rondo::TensorEntry& entry : header.entries) {
    const auto bytes = static_cast<uint64_t>(entry.elements() * rondo::dtype_size(entry.dtype));
    RONDO_ASSERT(entry.begin == total);
    RONDO_ASSERT(entry.end - entry.begin == bytes);
    total = entry.end;
    if (bytes > 0) {
      fuzz_sink = file[header.data_begin + entry.begin];
      fuzz_sink = file[header.data_begin + entry.end - 1];
    }
    const auto bad = rondo::first_non_finite(entry.dtype, file + header.data_begin + entry.begin,
                                             entry.elements());
    RONDO_ASSERT(!bad.has_value() || *bad < entry.elements());
  }
  RONDO_ASSERT(total == size - header.data_begin);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const rondo::SafetensorsHeader header = rondo::parse_safetensors_header(data, size, "fuzz");
    touch_tensors(data, size, header);
    rondo::verify_checksum(header, data, "fuzz");
  } catch (const rondo::Error&) {  // the only way to reject a file
  }
  return 0;
}
