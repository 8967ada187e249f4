// POSIX implementation of append_file.h.
#include "rondo/base/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace rondo {

int append_whole(int descriptor, std::string_view text) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return errno;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int reason = written < 0 ? errno : EIO;
      // Devices cannot be truncated and retain nothing.
      if (S_ISREG(info.st_mode) && ::ftruncate(descriptor, info.st_size) != 0) return errno;
      return reason;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int append_whole(const std::string& path, std::string_view text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  const int reason = append_whole(descriptor, text);
  // Network filesystems may report a failed write only on close.
  const int closed = ::close(descriptor);
  return reason == 0 && closed != 0 && errno != EINTR ? errno : reason;
}

}  // namespace rondo
