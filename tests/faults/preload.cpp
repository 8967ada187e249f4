// A library preloaded by tests (LD_PRELOAD) to inject faults that cannot be caused from outside at
// a chosen moment: when the command maps a file with RONDO_FAULT_FILE in its path. RONDO_FAULT
// selects the fault:
//   no_memory   mmap fails with ENOMEM
//   bad_alloc   std::bad_alloc is thrown in a parallel region, where nothing can catch it
//   bug         the same with another exception
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string_view>

namespace {

bool is_marked(int file) {
  const char* marked = std::getenv("RONDO_FAULT_FILE");
  if (marked == nullptr || file < 0) return false;
  char link[PATH_MAX];
  char name[64] = "/proc/self/fd/";
  size_t end = 14;
  for (int unit = 1'000'000'000; unit > 0; unit /= 10) {
    if (file >= unit || unit == 1) name[end++] = static_cast<char>('0' + file / unit % 10);
  }
  const ssize_t length = readlink(name, link, sizeof(link));
  if (length < 0) return false;
  const std::string_view path(link, static_cast<size_t>(length));
  return path.find(marked) != std::string_view::npos;
}

[[noreturn]] void throw_fault(bool memory) {
  if (memory) throw std::bad_alloc();
  throw std::logic_error("a bug\nframe #0: of no interest");
}

// In every thread of the region at once; without OpenMP (clang builds) in the calling thread.
void throw_in_parallel(bool memory) noexcept {
#pragma omp parallel num_threads(4)
  throw_fault(memory);
}

}  // namespace

extern "C" void* mmap(void* address, size_t length, int protection, int flags, int file,
                      off_t offset) noexcept {
  const char* fault = std::getenv("RONDO_FAULT");
  if (fault != nullptr && is_marked(file)) {
    if (std::string_view(fault) != "no_memory") {
      throw_in_parallel(std::string_view(fault) == "bad_alloc");
    }
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
      syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

extern "C" void* mmap64(void* address, size_t length, int protection, int flags, int file,
                        off64_t offset) noexcept {
  return mmap(address, length, protection, flags, file, offset);
}
