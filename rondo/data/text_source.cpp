// Finding the files of a corpus, and the compression-independent parts of TextReader.
#include "rondo/data/text_source.h"

#include <dirent.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/data/text_stream.h"

namespace rondo {
namespace {

constexpr size_t kMaxFolderDepth = 200;  // real trees are ten deep; bounds the stack

using FolderId = std::pair<dev_t, ino_t>;

struct stat look_up(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    fail_source_io(path, "look up", errno);
  }
  return info;
}

// The names in a folder that do not start with a dot, in system order.
std::vector<std::string> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), &::closedir);
  if (!stream) {
    fail_source_io(folder, "list", errno);
  }
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const struct dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      if (errno != 0) {
        fail_source_io(folder, "list", errno);
      }
      return names;
    }
    if (entry->d_name[0] != '.') {
      names.emplace_back(entry->d_name);
    }
  }
}

void add_source(std::string path, std::vector<std::string>& out) {
  if (out.size() >= kMaxSources) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected at most {} files, got more", printable(path, PATH_MAX),
                            with_commas(static_cast<int64_t>(kMaxSources))));
  }
  out.push_back(std::move(path));
}

// Every regular file below `folder`. `above` holds the folders on the path to it, so that a link
// back to one of them is not followed.
void walk_folder(const std::string& folder, const FolderId& id, std::vector<FolderId>& above,
                 std::vector<std::string>& out) {
  if (above.size() >= kMaxFolderDepth) {
    throw Error(ExitCode::bad_input, fmt::format("{}: folders are nested more than {} levels deep",
                                                 printable(folder, PATH_MAX), kMaxFolderDepth));
  }
  if (std::find(above.begin(), above.end(), id) != above.end()) {
    return;
  }
  above.push_back(id);
  for (const std::string& name : names_in(folder)) {
    std::string path = folder;
    path += path.back() == '/' ? "" : "/";
    path += name;
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) {
        continue;  // a dangling link, or a file removed meanwhile
      }
      fail_source_io(path, "look up", errno);
    }
    if (S_ISDIR(info.st_mode)) {
      walk_folder(path, {info.st_dev, info.st_ino}, above, out);
    } else if (S_ISREG(info.st_mode)) {
      add_source(std::move(path), out);
    }
  }
  above.pop_back();
}

// A file or folder that exists, with its stat() result in `info`.
void add_path(const std::string& path, const struct stat& info, std::vector<std::string>& out) {
  if (S_ISDIR(info.st_mode)) {
    std::vector<std::string> files;
    std::vector<FolderId> above;
    walk_folder(path, {info.st_dev, info.st_ino}, above, files);
    std::sort(files.begin(), files.end());
    for (std::string& file : files) {
      add_source(std::move(file), out);
    }
  } else if (S_ISREG(info.st_mode)) {
    add_source(path, out);
  } else {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected a file or a folder, got a device, pipe or socket",
                            printable(path, PATH_MAX)),
                "write the text to a file first");
  }
}

std::vector<std::string> read_list(const std::string& list) {
  const std::string text = read_text_file(list, kMaxListBytes);
  const size_t slash = list.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : list.substr(0, slash + 1);
  std::vector<std::string> out;
  int64_t number = 0;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    if (line.empty()) {
      continue;
    }
    const std::string path = line.front() == '/' ? line : folder + line;
    struct stat info {};
    if (path.find('\0') != std::string::npos || ::stat(path.c_str(), &info) != 0) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}:{}: file '{}' does not exist", printable(list, PATH_MAX), number,
                              printable(path)),
                  "a list has one path per line, relative to the list's own folder");
    }
    add_path(path, info, out);
  }
  return out;
}

}  // namespace

void fail_source_io(const std::string& path, const char* doing, int error_number) {
  throw Error(ExitCode::io, fmt::format("{}: cannot {}: {}", printable(path, PATH_MAX), doing,
                                        std::system_category().message(error_number)));
}

void fail_source_damaged(const std::string& path, const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", printable(path, PATH_MAX), what),
              "the file may be truncated or damaged: download or compress it again");
}

bool has_suffix(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

std::vector<std::string> list_sources(const std::string& path) {
  const struct stat info = look_up(path);
  if (S_ISREG(info.st_mode) && has_suffix(path, ".list")) {
    return read_list(path);
  }
  std::vector<std::string> out;
  add_path(path, info, out);
  return out;
}

TextReader::TextReader(const std::string& path) : path_(path), stream_(open_text_stream(path)) {}
TextReader::~TextReader() = default;
TextReader::TextReader(TextReader&& other) noexcept = default;
TextReader& TextReader::operator=(TextReader&& other) noexcept = default;

size_t TextReader::read_stream(char* out, size_t size) {
  const size_t got = size == 0 ? 0 : stream_->read(out, size);
  produced_ += static_cast<int64_t>(got);
  if (produced_ > kMinBombBytes && produced_ / kMaxExpansion > consumed()) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expands to more than {} times its size ({} from {} so far): "
                            "rejected as a decompression bomb",
                            printable(path_, PATH_MAX), kMaxExpansion, human_bytes(produced_),
                            human_bytes(consumed())),
                "if it really is that repetitive, decompress it and use the plain file");
  }
  return got;
}

int64_t TextReader::consumed() const { return stream_->consumed(); }

std::string read_source(const std::string& path, int64_t max_bytes, const ProgressOptions& shown) {
  require(max_bytes >= 0, "{}: expected a limit of 0 or more bytes, got {}", path, max_bytes);
  TextReader reader(path);
  std::string text;
  std::vector<char> block(size_t{1} << 16);
  std::error_code unknown;  // the size of a pipe
  const uintmax_t size = std::filesystem::file_size(path, unknown);
  Progress progress("reading " + std::filesystem::path(path).filename().string(),
                    unknown ? 0 : static_cast<int64_t>(size), shown);
  while (const size_t got = reader.read(block.data(), block.size())) {
    if (text.size() + got > static_cast<size_t>(max_bytes)) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: expected at most {} of text, got more",
                              printable(path, PATH_MAX), human_bytes(max_bytes)));
    }
    text.append(block.data(), got);
    progress.update(reader.consumed());
  }
  progress.finish();
  return text;
}

}  // namespace rondo
