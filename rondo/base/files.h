// Files that are whole or absent, and files that are read without being copied.
//
// Every refusal of the system is Error{ExitCode::io} and names the path, what was being done to it
// and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// Replaces a file in one step. Bytes go to a temporary beside the target; commit() makes them
// durable and renames. Until then, and after any failure or crash, readers see the old file (or
// none). An existing file's permissions are kept, and a symbolic link is written through.
//
// A target that exists and is not a regular file (/dev/stdout, a pipe) cannot be replaced, so it
// is written to directly; there commit() only flushes.
//
// Not thread-safe. After an Error only destruction is allowed.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();  // without commit(): removes the temporary
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }

  // Flush, fsync the file, rename it onto the target, fsync the directory. At most once; no
  // write() may follow.
  void commit();

  // Bytes given to write() so far.
  int64_t bytes_written() const { return bytes_written_; }

 private:
  void open_temporary();
  void flush();
  void write_through(const uint8_t* data, size_t size);
  void close_quietly() noexcept;
  [[noreturn]] void fail(const char* doing, int error_number) const;

  std::string path_;       // as the caller spelled it, for messages
  std::string target_;     // path_ with symbolic links resolved
  std::string temporary_;  // empty when target_ is written directly, or is already in place
  int fd_ = -1;
  int64_t bytes_written_ = 0;
  std::vector<uint8_t> buffer_;  // small writes gather here; large ones pass it by
};

// Replaces `path` by `contents` through AtomicFile.
void write_file(const std::string& path, std::string_view contents);

// Error{io} if a file could not be written at `path`: its folder is missing or closed to us, or it
// is a folder itself. Writes nothing.
void require_writable(const std::string& path);

// The whole of `path`. A file longer than `max_bytes` is Error{bad_input}; no more than that is
// ever held, so pipes and devices are safe to name.
std::string read_text_file(const std::string& path, int64_t max_bytes);

// A read-only mapping of a whole regular file. Nothing is read before it is touched, and pages are
// shared with every process that maps the same file. The length is that at opening; if another
// program truncates the file afterwards, touching the lost part raises SIGBUS (Rondo's own writers
// replace files and never shorten them). So long-lived readers call require_whole() first, and the
// command reports what happens in between (lost_mapping.h).
class MappedFile {
 public:
  MappedFile() = default;  // as if of an empty file
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return data_; }  // null when size() is 0
  size_t size() const { return size_; }

  // Error{io} naming `path` if the file has become shorter since. Costs a system call.
  void require_whole(const std::string& path) const;

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;  // kept open, to ask for the size
};

// Whether something (file, directory, device) is there and can be looked up.
bool exists(const std::string& path);

}  // namespace rondo
