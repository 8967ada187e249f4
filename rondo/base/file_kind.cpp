// Signatures and heuristics for file types.
#include "rondo/base/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr size_t kFront = size_t{1} << 16;

struct Signature {
  size_t at;
  std::string_view bytes;
  FileKind kind;
  const char* what;
};

using namespace std::string_view_literals;

constexpr std::array kSignatures = {
    Signature{0, "\xFF\xD8\xFF"sv, FileKind::image, "a JPEG image"},
    Signature{0, "\x89PNG\r\n\x1A\n"sv, FileKind::image, "a PNG image"},
    Signature{0, "GIF8"sv, FileKind::image, "a GIF image"},
    Signature{8, "WEBP"sv, FileKind::image, "a WebP image"},
    Signature{4, "ftyphei"sv, FileKind::image, "a HEIF image"},
    Signature{4, "ftypavif"sv, FileKind::image, "an AVIF image"},
    Signature{0, "II*\0"sv, FileKind::image, "a TIFF image"},
    Signature{0, "MM\0*"sv, FileKind::image, "a TIFF image"},
    Signature{0,
              "\x7F"
              "ELF"sv,
              FileKind::program, "a program or library (ELF)"},
    Signature{0, "%PDF-"sv, FileKind::document, "a PDF document"},
    Signature{0, "\xD0\xCF\x11\xE0"sv, FileKind::document, "an Office document"},
    Signature{0, "\x1F\x8B"sv, FileKind::compressed, "a gzip file"},
    Signature{0, "\x28\xB5\x2F\xFD"sv, FileKind::compressed, "a zstd file"},
    Signature{0,
              "\xFD"
              "7zXZ\0"sv,
              FileKind::compressed, "an xz file"},
    Signature{0, "BZh"sv, FileKind::compressed, "a bzip2 file"},
    Signature{257, "ustar"sv, FileKind::archive, "a tar archive"},
};

bool has_at(std::string_view front, size_t at, std::string_view bytes) {
  return front.size() >= at + bytes.size() && front.substr(at, bytes.size()) == bytes;
}

// A little-endian header length, then JSON.
bool is_safetensors(std::string_view front) {
  if (front.size() < 9 || front[8] != '{') return false;
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) {
    length |= static_cast<uint64_t>(static_cast<uint8_t>(front[i])) << (8 * i);
  }
  return length >= 2 && length < (uint64_t{1} << 30);
}

// A protocol buffer whose first field is a piece: 0x0A length 0x0A length "<unk>", and so on.
bool is_sentencepiece(std::string_view front) {
  return front.size() > 8 && front[0] == '\n' && front[2] == '\n' && front[4] == '<' &&
         static_cast<uint8_t>(front[1]) < 64;
}

FileLook look_at_zip(std::string_view front) {
  if (front.find("data.pkl") != std::string_view::npos) {
    return {FileKind::pytorch, "a PyTorch file (.pt, .pth)"};
  }
  if (front.find("[Content_Types]") != std::string_view::npos ||
      front.find("mimetypeapplication/vnd.oasis") != std::string_view::npos) {
    return {FileKind::document, "an Office document"};
  }
  return {FileKind::archive, "a zip archive"};
}

bool is_binary(std::string_view front) {
  const auto control = std::count_if(front.begin(), front.end(), [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\x1B';
  });
  return control * 100 > static_cast<std::ptrdiff_t>(front.size()) ||
         front.find('\0') != std::string_view::npos;
}

std::string_view trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

// Most lines other than blanks and comments are table headers or assignments.
bool looks_like_toml(std::string_view front) {
  int64_t fitting = 0;
  int64_t other = 0;
  bool first = true;
  while (!front.empty() && fitting + other < 100) {
    const size_t end = std::min(front.find('\n'), front.size());
    const std::string_view line = trimmed(front.substr(0, end));
    front.remove_prefix(std::min(end + 1, front.size()));
    if (line.empty() || line.front() == '#') continue;
    const size_t equals = line.find('=');
    const std::string_view key = trimmed(line.substr(0, equals));
    const bool assigns =
        equals != std::string_view::npos && !key.empty() &&
        std::all_of(key.begin(), key.end(), [](unsigned char c) {
          return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '"';
        });
    const bool heads = line.front() == '[' && line.find(']') != std::string_view::npos &&
                       line.find(' ') == std::string_view::npos;
    (assigns || heads ? fitting : other) += 1;
    if (first && other > 0) return false;
    first = false;
  }
  return fitting > 0 && fitting >= other;
}

}  // namespace

FileLook look_at_bytes(std::string_view front, const std::string& name) {
  if (front.empty()) return {FileKind::empty, "an empty file"};
  for (const Signature& s : kSignatures) {
    if (has_at(front, s.at, s.bytes)) return {s.kind, s.what};
  }
  if (has_at(front, 0, "PK\x03\x04")) return look_at_zip(front);
  if (front.size() > 2 && front[0] == '\x80' && front[1] >= 2 && front[1] <= 5) {
    return {FileKind::pytorch, "a Python pickle (an old PyTorch file)"};
  }
  if (is_safetensors(front)) return {FileKind::safetensors, "a safetensors file"};
  if (is_sentencepiece(front)) return {FileKind::tokenizer, "a SentencePiece tokenizer"};
  if (has_at(front, 0, "BM") && is_binary(front)) return {FileKind::image, "a BMP image"};
  if (is_binary(front)) return {FileKind::binary, "a binary file of unknown kind"};
  if (looks_like_toml(front)) return {FileKind::toml, "a TOML file"};
  const std::string_view body = trimmed(front);
  const bool json_name = std::filesystem::path(name).extension() == ".json";
  if (json_name && !body.empty() && (body.front() == '{' || body.front() == '[')) {
    return {FileKind::json, "a JSON file"};
  }
  return {FileKind::text, "text"};
}

FileLook look_at_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error || !std::filesystem::exists(status)) return {FileKind::missing, "missing"};
  if (std::filesystem::is_directory(status)) return {FileKind::folder, "a folder"};
  if (!std::filesystem::is_regular_file(status)) return {FileKind::binary, "a device or pipe"};
  std::ifstream in(path, std::ios::binary);
  std::string front(kFront, '\0');
  in.read(front.data(), static_cast<std::streamsize>(front.size()));
  if (in.bad()) return {FileKind::missing, "unreadable"};
  front.resize(static_cast<size_t>(in.gcount()));
  return look_at_bytes(front, path);
}

std::string advice_for(const FileLook& look, const std::string& path, const std::string& verb) {
  switch (look.kind) {
    case FileKind::image:
      if (verb == "train") {
        return "to train on images, pass a folder with one subfolder of images per class";
      }
      return fmt::format("the model comes first, then images: rondo classify RUN {}", path);
    case FileKind::pytorch:
      return fmt::format(
          "convert it in Python: safetensors.torch.save_file(torch.load(\"{}\", "
          "map_location=\"cpu\"), \"weights.safetensors\"), then 'rondo import' (see 'rondo "
          "import --help')",
          path);
    case FileKind::text:
      return fmt::format("to train a language model on it: rondo train {}", path);
    case FileKind::toml:
      return fmt::format("to train the model it describes: rondo train {}", path);
    case FileKind::safetensors:
      return "model files end in .safetensors; convert weights of other programs with 'rondo "
             "import'";
    case FileKind::tokenizer:
      return fmt::format("to use it as the tokenizer: --tokenizer {}", path);
    case FileKind::compressed:
      return look.what == "a gzip file" || look.what == "a zstd file"
                 ? "compressed text is supported if named .gz or .zst: rondo train NAME.txt.gz"
                 : "decompress it first, or compress it with gzip or zstd instead";
    case FileKind::archive:
    case FileKind::document:
      return look.what == "a tar archive" ? "to train on its images: --set data.train=FILE.tar"
                                          : "unpack it, or save its text as a plain text file";
    default:
      return "";
  }
}

}  // namespace rondo
