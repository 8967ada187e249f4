// What kind of file something is, by its first bytes: users name a picture where a model is
// expected, or a text where a recipe is, and should be told so.
#pragma once

#include <string>
#include <string_view>

namespace rondo {

enum class FileKind {
  missing,
  folder,
  empty,
  safetensors,
  image,       // JPEG, PNG, or one that Rondo does not read
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

// Looks at no more than the first 64 KiB. Never throws: what cannot be read is `missing`.
FileLook look_at_file(const std::string& path);

// The same of bytes; `name` decides between kinds of text.
FileLook look_at_bytes(std::string_view front, const std::string& name);

// What to do with such a file, as the advice of an error message; "" if there is nothing to say.
// `verb` is what the user asked for ("train", "generate", …; "" if unknown).
std::string advice_for(const FileLook& look, const std::string& path, const std::string& verb = "");

}  // namespace rondo
