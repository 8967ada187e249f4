// POSIX implementation of files.h.
#include "rondo/base/files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/lost_mapping.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr size_t kWriteBufferBytes = size_t{1} << 16;

std::string system_reason(int error_number) {
  return std::system_category().message(error_number);  // strerror() is not thread-safe
}

[[noreturn]] void fail_io(const std::string& path, const char* doing, int error_number) {
  throw Error(ExitCode::io, fmt::format("{}: cannot {}: {}", printable(path, PATH_MAX), doing,
                                        system_reason(error_number)));
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Resolves a symbolic link, so that its target is replaced and not the link. A dangling link is
// itself replaced.
std::string resolve_link(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) {
    return path;
  }
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) {
    return path;
  }
  std::string target(resolved);
  std::free(resolved);
  return target;
}

// An RAII descriptor for reading.
class ReadDescriptor {
 public:
  explicit ReadDescriptor(const std::string& path, int extra_flags)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | extra_flags)) {
    if (fd_ < 0) {
      fail_io(path, "open for reading", errno);
    }
  }
  ~ReadDescriptor() { ::close(fd_); }
  ReadDescriptor(const ReadDescriptor&) = delete;
  ReadDescriptor& operator=(const ReadDescriptor&) = delete;

  int get() const { return fd_; }

  struct stat status(const std::string& path) const {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) {
      fail_io(path, "look up", errno);
    }
    if (S_ISDIR(info.st_mode)) {
      fail_io(path, "read", EISDIR);
    }
    return info;
  }

 private:
  int fd_;
};

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(resolve_link(path)) {
  buffer_.reserve(kWriteBufferBytes);
  struct stat info {};
  const bool there = ::stat(target_.c_str(), &info) == 0;
  if (there && S_ISDIR(info.st_mode)) {
    fail("write", EISDIR);
  }
  if (there && !S_ISREG(info.st_mode)) {
    fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) {
      fail("open for writing", errno);
    }
    return;
  }
  open_temporary();
  if (there) {
    // Best effort: some filesystems have no permissions.
    (void)::fchmod(fd_, info.st_mode & 07777);
  }
}

AtomicFile::~AtomicFile() { close_quietly(); }

void AtomicFile::open_temporary() {
  static std::atomic<uint64_t> counter{0};
  const std::string directory = directory_of(target_);
  const size_t slash = target_.find_last_of('/');
  std::string name = slash == std::string::npos ? target_ : target_.substr(slash + 1);
  if (name.empty()) {
    fail("write", target_.empty() ? ENOENT : EISDIR);
  }
  if (name.size() > NAME_MAX) {
    fail("write", ENAMETOOLONG);
  }
  name.resize(std::min<size_t>(name.size(), NAME_MAX - 64));  // room for the suffix
  constexpr int kAttempts = 1000;  // crashed processes with our PID may have left files
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string candidate = fmt::format("{}/.{}.{}-{}.tmp", directory == "/" ? "" : directory, name,
                                        ::getpid(), counter++);
    fd_ = ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0) {
      temporary_ = std::move(candidate);
      return;
    }
    if (errno != EEXIST) {
      fail("create a temporary file next to it", errno);
    }
  }
  fail("create a temporary file next to it", EEXIST);
}

void AtomicFile::write(const void* data, size_t size) {
  RONDO_ASSERT(fd_ >= 0);  // no write after commit() or a failure
  RONDO_ASSERT(data != nullptr || size == 0);
  bytes_written_ += static_cast<int64_t>(size);
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (buffer_.size() + size > kWriteBufferBytes) {
    flush();
  }
  if (size >= kWriteBufferBytes) {
    write_through(bytes, size);
  } else if (size > 0) {
    buffer_.insert(buffer_.end(), bytes, bytes + size);
  }
}

void AtomicFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::write_through(const uint8_t* data, size_t size) {
  constexpr size_t kOneCall = size_t{1} << 30;  // Linux writes at most 2 GiB - 4 KiB per call
  while (size > 0) {
    const ssize_t written = ::write(fd_, data, std::min(size, kOneCall));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      fail("write", errno);
    }
    data += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  RONDO_ASSERT(fd_ >= 0);
  flush();
  const bool direct = temporary_.empty();
  if (!direct && ::fsync(fd_) != 0) {
    fail("flush to disk", errno);
  }
  // Network filesystems may report a failed write only on close.
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0 && errno != EINTR) {
    fail("close", errno);
  }
  if (direct) {
    return;
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail("rename the temporary file onto it", errno);
  }
  temporary_.clear();
  const std::string directory = directory_of(target_);
  const int directory_fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_fd < 0) {
    return;  // writable but not readable: renamed, but not synced
  }
  const int synced = ::fsync(directory_fd);
  const int sync_error = errno;
  ::close(directory_fd);
  if (synced != 0 && sync_error != EINVAL) {  // EINVAL: not supported by this filesystem
    fail("flush its directory to disk", sync_error);
  }
}

void AtomicFile::close_quietly() noexcept {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    temporary_.clear();
  }
}

void AtomicFile::fail(const char* doing, int error_number) const {
  std::string message = fmt::format("{}: cannot {}: {}", printable(path_, PATH_MAX), doing,
                                    system_reason(error_number));
  const bool no_space = error_number == ENOSPC || error_number == EDQUOT;
  if (no_space) {
    message += fmt::format(" ({} bytes needed so far)", with_commas(bytes_written_));
  }
  std::string advice;
  if (no_space) {
    advice = "free some space or write to another disk";
  } else if (error_number == ENOENT) {
    advice = fmt::format("create the directory '{}' first", directory_of(path_));
  }
  throw Error(ExitCode::io, std::move(message), std::move(advice));
}

void write_file(const std::string& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

void require_writable(const std::string& path) {
  const auto refuse = [&](const std::string& what, const std::string& advice) {
    throw Error(ExitCode::io, fmt::format("{}: cannot write: {}", printable(path, PATH_MAX), what),
                advice);
  };
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) refuse("is a folder", "pass a file name");
    if (!S_ISREG(info.st_mode)) return;  // a device or pipe is written to directly
  }
  const size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  if (::stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    refuse(fmt::format("folder {} does not exist", printable(folder, PATH_MAX)),
           "create the folder first");
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    refuse(std::system_category().message(errno), "choose another folder");
  }
}

std::string read_text_file(const std::string& path, int64_t max_bytes) {
  const ReadDescriptor file(path, 0);
  const struct stat info = file.status(path);
  const auto bound = static_cast<size_t>(max_bytes);
  std::string text;
  if (S_ISREG(info.st_mode)) {
    text.reserve(std::min(static_cast<size_t>(info.st_size), bound));
  }
  std::vector<char> chunk(kWriteBufferBytes);
  while (true) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      fail_io(path, "read", errno);
    }
    if (got == 0) {
      return text;
    }
    if (text.size() + static_cast<size_t>(got) > bound) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: expected at most {} bytes, got more", printable(path, PATH_MAX),
                              with_commas(max_bytes)),
                  "check that this is the intended file");
    }
    text.append(chunk.data(), static_cast<size_t>(got));
  }
}

MappedFile::MappedFile(const std::string& path) {
  const ReadDescriptor file(path, O_NONBLOCK);  // otherwise opening a pipe may block
  const struct stat info = file.status(path);
  if (!S_ISREG(info.st_mode)) {
    throw Error(ExitCode::io, fmt::format("{}: cannot map: expected a regular file, got a device, "
                                          "pipe or socket",
                                          printable(path, PATH_MAX)));
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) {
    return;  // mmap rejects length 0
  }
  void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapping == MAP_FAILED) {
    fail_io(path, "map into memory", errno);
  }
  data_ = static_cast<const uint8_t*>(mapping);
  fd_ = ::fcntl(file.get(), F_DUPFD_CLOEXEC, 0);
  note_mapping(data_, size_, path);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    forget_mapping(data_);
    ::munmap(const_cast<uint8_t*>(data_), size_);
  }
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      fd_(std::exchange(other.fd_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  return *this;
}

void MappedFile::require_whole(const std::string& path) const {
  struct stat info {};
  if (fd_ < 0 || ::fstat(fd_, &info) != 0 || static_cast<size_t>(info.st_size) >= size_) {
    return;
  }
  throw Error(ExitCode::io,
              fmt::format("{}: was truncated while in use: expected {} bytes, got {}",
                          printable(path, PATH_MAX), size_, info.st_size),
              "check whether another program writes to it");
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

}  // namespace rondo
