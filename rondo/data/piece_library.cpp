// Loading the SentencePiece plugin.
#include "rondo/data/piece_library.h"

#include <dlfcn.h>

#include "rondo/base/error.h"
#include "rondo/base/own_files.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RONDO_SANITIZER_RUNTIME 1
#endif
#endif

namespace rondo {
namespace {

// The sanitizer's runtime refuses RTLD_DEEPBIND; without libtorch in the process it is not needed.
#if defined(RONDO_SANITIZER_RUNTIME)
constexpr int kPrivately = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kPrivately = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

const PieceLibrary& load_plugin() {
  const std::string path = module_path("librondo_sentencepiece.so");
  void* plugin = dlopen(path.c_str(), kPrivately);
  void* symbol = plugin == nullptr ? nullptr : dlsym(plugin, "rondo_piece_library");
  if (symbol == nullptr) {
    throw Error(ExitCode::failure, std::string("cannot load SentencePiece: ") + dlerror(),
                "build it with ./demo, and keep librondo_sentencepiece.so beside librondo_base.so");
  }
  return *reinterpret_cast<const PieceLibrary* (*)()>(symbol)();
}

}  // namespace

const PieceLibrary& piece_library() {
  static const PieceLibrary& library = load_plugin();
  return library;
}

}  // namespace rondo
