// The streams behind TextReader, one per file type. Internal to the text sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/data/text_source.h"

namespace rondo {

// The raw bytes of a file, read block by block.
class RawFile {
 public:
  explicit RawFile(const std::string& path);
  ~RawFile();
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  size_t read(void* out, size_t size);  // 0 only at the end
  int64_t consumed() const { return consumed_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
  int64_t consumed_ = 0;
};

class TextReader::Stream {
 public:
  explicit Stream(const std::string& path) : file_(path) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  virtual size_t read(char* out, size_t size) = 0;  // size > 0; 0 only at the end
  int64_t consumed() const { return file_.consumed(); }

 protected:
  RawFile file_;
};

// Chosen by file name suffix.
std::unique_ptr<TextReader::Stream> open_text_stream(const std::string& path);

[[noreturn]] void fail_source_io(const std::string& path, const char* doing, int error_number);
[[noreturn]] void fail_source_damaged(const std::string& path, const std::string& what);

bool has_suffix(std::string_view text, std::string_view suffix);

}  // namespace rondo
