// File type detection by leading bytes, so that an image passed as a model, or a text passed as a
// recipe, gets a helpful message.
#pragma once

#include <string>
#include <string_view>

namespace rondo {

enum class FileKind {
  missing,
  folder,
  empty,
  safetensors,
  image,       // JPEG, PNG, or a format Rondo cannot read
  archive,     // tar or zip
  compressed,  // gzip, zstd, xz, bzip2
  pytorch,     // a .pt or .pth, or another pickle
  tokenizer,   // a SentencePiece model
  program,     // ELF
  document,    // PDF, Office
  toml,        // text that looks like TOML
  json,
  text,
  binary,  // anything else
};

struct FileLook {
  FileKind kind = FileKind::missing;
  std::string what;  // "a JPEG image", for messages
};

// Reads at most the first 64 KiB. Never throws: an unreadable file is `missing`.
FileLook look_at_file(const std::string& path);

// The same for bytes; `name` decides between kinds of text.
FileLook look_at_bytes(std::string_view front, const std::string& name);

// Advice for an error message about such a file; may be "". `verb` is the command in use ("train",
// "generate", …; "" if unknown).
std::string advice_for(const FileLook& look, const std::string& path, const std::string& verb = "");

}  // namespace rondo
