// Loading the SentencePiece plugin.
#include "rondo/data/piece_library.h"

#include <dlfcn.h>

#include <filesystem>

#include "rondo/base/error.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RONDO_ADDRESS_SANITIZER 1
#endif
#endif

namespace rondo {
namespace {

// The sanitizer's runtime refuses RTLD_DEEPBIND; without libtorch in the process it is not needed.
#if defined(RONDO_ADDRESS_SANITIZER)
constexpr int kPrivately = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kPrivately = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

// The folder of the program or library that this code is in.
std::string own_folder() {
  Dl_info info = {};
  const auto* here = reinterpret_cast<const void*>(&piece_library);
  std::string path = dladdr(here, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
  if (path.empty() || path.front() != '/') {  // a program's own name is whatever it was called by
    std::error_code ignored;
    path = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  }
  return std::filesystem::path(path).parent_path().string();
}

const PieceLibrary& load_plugin() {
  const std::string path = own_folder() + "/librondo_sentencepiece.so";
  void* plugin = dlopen(path.c_str(), kPrivately);
  void* symbol = plugin == nullptr ? nullptr : dlsym(plugin, "rondo_piece_library");
  if (symbol == nullptr) {
    throw Error(ExitCode::failure, std::string("cannot load SentencePiece: ") + dlerror(),
                "build it with ./demo, and keep librondo_sentencepiece.so beside rondo");
  }
  return *reinterpret_cast<const PieceLibrary* (*)()>(symbol)();
}

}  // namespace

const PieceLibrary& piece_library() {
  static const PieceLibrary& library = load_plugin();
  return library;
}

}  // namespace rondo
