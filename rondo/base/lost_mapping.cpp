// A signal-safe table of mappings, and the SIGBUS handler.
#include "rondo/base/lost_mapping.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr size_t kMappings = 64;
constexpr size_t kPathBytes = 1024;

// In use while `begin` is not 0, which is set last and cleared first.
struct Mapping {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  char path[kPathBytes] = {};
};

std::array<Mapping, kMappings> mappings;
std::mutex mappings_mutex;  // guards writers; the handler only reads

void say(const char* text) {
  const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  (void)written;  // nowhere left to report to
}

void report_sigbus(int signal, siginfo_t* info, void* /*context*/) {
  const auto place = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Mapping& mapping : mappings) {
    const uintptr_t begin = mapping.begin.load(std::memory_order_acquire);
    // si_addr gives the page; the last one may extend past the file.
    if (begin == 0 || place < begin || place >= mapping.end.load(std::memory_order_relaxed)) {
      continue;
    }
    say("rondo: ");
    say(mapping.path);
    say(": was truncated while being read, or its disk failed\n"
        "  check whether another program writes to it\n");
    ::_exit(static_cast<int>(ExitCode::io));
  }
  std::signal(signal, SIG_DFL);  // on return the access is retried, which kills the process
}

}  // namespace

void report_lost_mappings() {
  struct sigaction action {};
  action.sa_sigaction = &report_sigbus;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGBUS, &action, nullptr);
}

void note_mapping(const void* data, size_t size, const std::string& path) {
  const std::lock_guard<std::mutex> lock(mappings_mutex);
  const auto free = std::find_if(mappings.begin(), mappings.end(),
                                 [](const Mapping& mapping) { return mapping.begin == 0; });
  if (free == mappings.end()) return;
  const std::string shown = printable(path, kPathBytes - 8);
  free->path[shown.copy(free->path, kPathBytes - 1)] = '\0';
  free->end.store(reinterpret_cast<uintptr_t>(data) + size, std::memory_order_relaxed);
  free->begin.store(reinterpret_cast<uintptr_t>(data), std::memory_order_release);
}

void forget_mapping(const void* data) {
  const std::lock_guard<std::mutex> lock(mappings_mutex);
  for (Mapping& mapping : mappings) {
    if (mapping.begin == reinterpret_cast<uintptr_t>(data)) mapping.begin = 0;
  }
}

}  // namespace rondo
