// Atomic writes and memory-mapped reads.
//
// Every system failure throws Error{ExitCode::io} with the path, the operation and the system's
// reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// Replaces a file atomically. Data goes to a temporary file next to the target; commit() makes it
// durable and renames it. Until then, and after any failure or crash, readers see the old file (or
// none). Existing permissions are kept, and symbolic links are followed.
//
// An existing target that is not a regular file (/dev/stdout, a pipe) cannot be replaced and is
// written directly; commit() then only flushes.
//
// Not thread-safe. After an Error the object may only be destroyed.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();  // without commit(): removes the temporary
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }

  // Flushes, fsyncs the file, renames it onto the target and fsyncs the directory. Call at most
  // once, after the last write().
  void commit();

  // Bytes passed to write() so far.
  int64_t bytes_written() const { return bytes_written_; }

 private:
  void open_temporary();
  void flush();
  void write_through(const uint8_t* data, size_t size);
  void close_quietly() noexcept;
  [[noreturn]] void fail(const char* doing, int error_number) const;

  std::string path_;       // as given, for messages
  std::string target_;     // path_ with symbolic links resolved
  std::string temporary_;  // empty if target_ is written directly, or after commit()
  int fd_ = -1;
  int64_t bytes_written_ = 0;
  std::vector<uint8_t> buffer_;  // collects small writes; large ones bypass it
};

// Replaces `path` with `contents` through AtomicFile.
void write_file(const std::string& path, std::string_view contents);

// Throws Error{io} if a file cannot be written at `path`: its folder is missing or not writable, or
// it is itself a folder. Writes nothing.
void require_writable(const std::string& path);

// The contents of `path`. Throws Error{bad_input} if it is longer than `max_bytes`; never holds
// more than that, so pipes and devices are safe.
std::string read_text_file(const std::string& path, int64_t max_bytes);

// A read-only mapping of a whole regular file. Pages are loaded on first access and shared with
// every process that maps the same file. The length is fixed at opening; if another program
// truncates the file afterwards, accessing the lost part raises SIGBUS (Rondo's own writers replace
// files and never truncate them). Long-lived readers therefore call require_whole() first, and the
// command reports what slips through (lost_mapping.h).
class MappedFile {
 public:
  MappedFile() = default;  // like an empty file
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return data_; }  // null when size() is 0
  size_t size() const { return size_; }

  // Throws Error{io} naming `path` if the file has been truncated since. Costs a system call.
  void require_whole(const std::string& path) const;

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;  // kept open to query the size
};

// Whether `path` (file, directory, device) exists and can be looked up.
bool exists(const std::string& path);

}  // namespace rondo
