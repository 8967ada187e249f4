// Plain, gzip and zstd streams.
#include "rondo/data/text_stream.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr size_t kInputBlockBytes = size_t{1} << 17;
constexpr size_t kOutputCallBytes = size_t{1} << 30;  // zlib counts in 32 bits

class PlainStream : public TextReader::Stream {
 public:
  using Stream::Stream;
  size_t read(char* out, size_t size) override { return file_.read(out, size); }
};

// Gzip members in sequence. Zero bytes after the last one are padding, as for gzip itself.
class GzipStream : public TextReader::Stream {
 public:
  explicit GzipStream(const std::string& path) : Stream(path), input_(kInputBlockBytes) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (::inflateInit2(&zlib_, kGzipOnly) != Z_OK) {
      throw std::bad_alloc();  // the only way it can fail
    }
  }
  ~GzipStream() override { ::inflateEnd(&zlib_); }

  size_t read(char* out, size_t size) override {
    zlib_.next_out = reinterpret_cast<Bytef*>(out);
    zlib_.avail_out = static_cast<uInt>(std::min(size, kOutputCallBytes));
    const uInt room = zlib_.avail_out;
    while (zlib_.avail_out == room && !ended_) {
      step();
    }
    return room - zlib_.avail_out;
  }

 private:
  bool refill() {  // false at the end of the file
    if (zlib_.avail_in == 0) {
      zlib_.next_in = input_.data();
      zlib_.avail_in = static_cast<uInt>(file_.read(input_.data(), input_.size()));
    }
    return zlib_.avail_in > 0;
  }

  // One call of inflate(), or the step to the next member.
  void step() {
    if (between_members_ && !next_member()) {
      ended_ = true;
      return;
    }
    if (!refill()) {
      fail_source_damaged(file_.path(), "the gzip data are truncated");
    }
    const int status = ::inflate(&zlib_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      between_members_ = true;
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail_source_damaged(file_.path(),
                          fmt::format("damaged gzip data after {} bytes ({})",
                                      with_commas(file_.consumed() - zlib_.avail_in),
                                      zlib_.msg != nullptr ? zlib_.msg : "not a gzip file"));
    }
  }

  bool next_member() {
    while (refill() && members_ > 0 && *zlib_.next_in == 0) {
      ++zlib_.next_in;
      --zlib_.avail_in;
      padded_ = true;
    }
    if (zlib_.avail_in == 0) {
      if (members_ == 0) {
        fail_source_damaged(file_.path(), "expected gzip data, got an empty file");
      }
      return false;
    }
    if (padded_) {
      fail_source_damaged(file_.path(), "unexpected data after the end of the gzip data");
    }
    RONDO_ASSERT(::inflateReset(&zlib_) == Z_OK);
    between_members_ = false;
    ++members_;
    return true;
  }

  z_stream zlib_{};
  std::vector<Bytef> input_;
  bool between_members_ = true;
  bool padded_ = false;
  bool ended_ = false;
  int64_t members_ = 0;
};

// Zstandard frames in sequence.
class ZstdStream : public TextReader::Stream {
 public:
  explicit ZstdStream(const std::string& path)
      : Stream(path), context_(::ZSTD_createDCtx(), &::ZSTD_freeDCtx), input_(kInputBlockBytes) {
    if (!context_) {
      throw std::bad_alloc();
    }
    const size_t status =
        ::ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxZstdWindowLog);
    RONDO_ASSERT(::ZSTD_isError(status) == 0);
  }

  size_t read(char* out, size_t size) override {
    ZSTD_outBuffer output{out, size, 0};
    while (output.pos == 0 && !ended_) {
      if (buffer_.pos == buffer_.size) {
        buffer_ = {input_.data(), file_.read(input_.data(), input_.size()), 0};
      }
      if (buffer_.size == 0) {
        at_file_end(output);
      } else {
        decompress(output);
      }
    }
    return output.pos;
  }

 private:
  void decompress(ZSTD_outBuffer& output) {
    expected_ = ::ZSTD_decompressStream(context_.get(), &output, &buffer_);
    any_ = true;
    if (::ZSTD_isError(expected_) == 0) {
      return;
    }
    if (::ZSTD_getErrorCode(expected_) == ZSTD_error_frameParameter_windowTooLarge) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: the zstd data require a window larger than {}",
                              printable(file_.path(), PATH_MAX),
                              human_bytes(int64_t{1} << kMaxZstdWindowLog)),
                  "compress the file again without --long or --ultra");
    }
    fail_source_damaged(file_.path(),
                        fmt::format("damaged zstd data ({})", ::ZSTD_getErrorName(expected_)));
  }

  // No more input: flushes the decoder, after which a frame must have ended.
  void at_file_end(ZSTD_outBuffer& output) {
    if (!any_) {
      fail_source_damaged(file_.path(), "expected zstd data, got an empty file");
    }
    if (expected_ != 0) {
      const size_t before = output.pos;
      decompress(output);
      if (output.pos == before) {
        fail_source_damaged(file_.path(), "the zstd data are truncated");
      }
      return;
    }
    ended_ = true;
  }

  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_;
  std::vector<char> input_;
  ZSTD_inBuffer buffer_{nullptr, 0, 0};
  size_t expected_ = 0;  // what the decoder expects next; 0: a frame has just ended
  bool any_ = false;
  bool ended_ = false;
};

}  // namespace

RawFile::RawFile(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) {
    fail_source_io(path_, "open for reading", errno);
  }
  (void)::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);  // a hint; may be ignored
}

RawFile::~RawFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

size_t RawFile::read(void* out, size_t size) {
  while (true) {
    const ssize_t got = ::read(fd_, out, std::min(size, kOutputCallBytes));
    if (got >= 0) {
      consumed_ += got;
      return static_cast<size_t>(got);
    }
    if (errno != EINTR) {
      fail_source_io(path_, "read", errno);
    }
  }
}

std::unique_ptr<TextReader::Stream> open_text_stream(const std::string& path) {
  if (has_suffix(path, ".gz") || has_suffix(path, ".tgz")) {
    return std::make_unique<GzipStream>(path);
  }
  if (has_suffix(path, ".zst")) {
    return std::make_unique<ZstdStream>(path);
  }
  return std::make_unique<PlainStream>(path);
}

}  // namespace rondo
