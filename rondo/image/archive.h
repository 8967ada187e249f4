// Image sets in one file: tar archives, IDX arrays (MNIST) and CIFAR records. Only indices are
// built here; nothing is copied or unpacked to disk. The files are untrusted: every size is checked
// against the actual data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/base/progress.h"

namespace rondo {

struct TarEntry {
  std::string name;  // without a leading "./"; slashes between parts
  size_t begin = 0;  // offset of its bytes in the archive
  size_t size = 0;
};

// The regular files of a tar archive (v7, ustar, GNU and pax names and sizes) in archive order;
// links, folders and devices are skipped. Error{bad_input} naming `source` if the archive is
// truncated, a header checksum is wrong, or there are more than kMaxSources files.
std::vector<TarEntry> list_tar(std::string_view archive, const std::string& source,
                               const ProgressOptions& shown = loading_progress());

// An IDX file of unsigned bytes.
struct IdxArray {
  std::vector<int64_t> shape;  // at least one axis; all positive
  size_t begin = 0;            // offset of the values, which extend to the end of the file
};

// Error{bad_input} unless the file is exactly as long as its header implies.
IdxArray parse_idx(std::string_view bytes, const std::string& source);

// A file of CIFAR records: label bytes, then 1,024 red, green and blue values.
struct CifarRecords {
  int64_t count = 0;
  size_t record = 0;    // bytes per record
  size_t label_at = 0;  // CIFAR-100 has a coarse label before the fine one, which we use
  int64_t classes = 0;  // 10 or 100
};

constexpr int64_t kCifarSide = 32;

// Error{bad_input} if the file size is not a multiple of the record size or a label is out of
// range.
CifarRecords parse_cifar(std::string_view bytes, const std::string& source);

}  // namespace rondo
