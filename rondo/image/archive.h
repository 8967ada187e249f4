// Sets of images in one file: tar archives, IDX arrays (MNIST) and CIFAR's records. Only indices
// are made here; the bytes stay where they are, and nothing is ever unpacked to disk. The files may
// be anybody's: every size is compared with what is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

struct TarEntry {
  std::string name;  // without a leading "./"; slashes between parts
  size_t begin = 0;  // of its bytes in the archive
  size_t size = 0;
};

// The regular files of a tar archive (v7, ustar, GNU and pax names and sizes) in its order; links,
// folders and devices are passed over. Error{bad_input} naming `source` if the archive is cut
// short, a header's checksum is wrong, or there are more than kMaxSources files.
std::vector<TarEntry> list_tar(std::string_view archive, const std::string& source);

// An IDX file of unsigned bytes.
struct IdxArray {
  std::vector<int64_t> shape;  // at least one axis; all of them positive
  size_t begin = 0;            // of the values, which reach to the end of the file
};

// Error{bad_input} unless the file is exactly as long as its header says.
IdxArray parse_idx(std::string_view bytes, const std::string& source);

// A file of CIFAR records: label bytes, then 1,024 red, green and blue values.
struct CifarRecords {
  int64_t count = 0;
  size_t record = 0;    // bytes of each
  size_t label_at = 0;  // CIFAR-100 has a coarse label before the fine one, which is ours
  int64_t classes = 0;  // 10 or 100
};

constexpr int64_t kCifarSide = 32;

// Error{bad_input} if the file is no whole number of records or a label is out of range.
CifarRecords parse_cifar(std::string_view bytes, const std::string& source);

}  // namespace rondo
