// Loading the SentencePiece plugin.
#include "rondo/data/piece_library.h"

#include "rondo/base/plugin.h"

namespace rondo {

const PieceLibrary& piece_library() {
  using Library = const PieceLibrary* (*)();
  static const PieceLibrary& library = *reinterpret_cast<Library>(
      plugin_function("librondo_sentencepiece.so", "rondo_piece_library", "SentencePiece"))();
  return library;
}

}  // namespace rondo
