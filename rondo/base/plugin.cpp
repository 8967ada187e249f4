// Loading modules with dlopen.
#include "rondo/base/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/own_files.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RONDO_SANITIZER_RUNTIME 1
#endif
#endif

namespace rondo {
namespace {

// The sanitizer runtime rejects RTLD_DEEPBIND, which is only needed with libtorch in the process.
#if defined(RONDO_SANITIZER_RUNTIME)
constexpr int kPrivately = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kPrivately = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

}  // namespace

void* plugin_function(const std::string& file, const char* symbol, const std::string& what) {
  const std::string path = module_path(file);
  void* plugin = dlopen(path.c_str(), kPrivately);
  void* function = plugin == nullptr ? nullptr : dlsym(plugin, symbol);
  if (function != nullptr) return function;
  throw Error(ExitCode::failure, fmt::format("cannot load {}: {}", what, dlerror()),
              fmt::format("build it with ./demo, and keep {} next to librondo_base.so", file));
}

}  // namespace rondo
