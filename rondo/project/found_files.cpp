// Inspection of data files and folders.
#include "rondo/project/found_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/config/recipes.h"
#include "rondo/config/share.h"
#include "rondo/data/parallel_text.h"
#include "rondo/data/text_source.h"
#include "rondo/image/decode.h"
#include "rondo/image/sources.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

bool is_compressed_name(const fs::path& path) {
  return path.extension() == ".gz" || path.extension() == ".zst";
}

// "de" for "corpus.de.gz".
std::string language_of(const std::string& path) {
  fs::path name = fs::path(path).filename();
  if (is_compressed_name(name)) name = name.stem();
  const std::string ending = name.extension().string();
  return ending.size() > 1 ? ending.substr(1) : "";
}

// The entries of a folder by base name: "valid" for "valid.txt.gz".
std::multimap<std::string, fs::path> entries_by_stem(const std::string& folder) {
  std::multimap<std::string, fs::path> entries;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name[0] != '.') entries.emplace(name.substr(0, name.find('.')), entry.path());
  }
  return entries;
}

std::string entry_named(const std::multimap<std::string, fs::path>& entries,
                        const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = entries.find(name);
    if (found != entries.end()) return found->second.string();
  }
  return "";
}

const std::vector<std::string> kValidNames = {"valid", "val", "validation", "dev"};
const std::vector<std::string> kTestNames = {"test"};

// Whether a folder directly contains an image. Checks at most a few hundred names.
bool holds_images(const fs::path& folder) {
  std::error_code error;
  int looked = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (is_image_name(entry.path().string())) return true;
    if (++looked > 300) break;
  }
  return false;
}

bool class_folders_below(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.is_directory(ignored) && holds_images(entry.path())) return true;
  }
  return false;
}

bool is_array_file(const std::string& name) {
  return name.find("-ubyte") != std::string::npos || name.rfind("data_batch_", 0) == 0 ||
         name.rfind("test_batch", 0) == 0;
}

// The splits of a folder of CIFAR or IDX files, which open_images() calls train and test.
std::optional<FoundSplits> array_splits(const fs::path& folder) {
  bool train = false;
  bool test = false;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!is_array_file(name)) continue;
    (name.rfind("t10k", 0) == 0 || name.rfind("test", 0) == 0 ? test : train) = true;
  }
  if (!train || !test) return std::nullopt;
  return FoundSplits{(folder / "train").string(), "", (folder / "test").string()};
}

}  // namespace

FoundSplits find_splits(const std::string& path) {
  if (!fs::is_directory(path)) return {path, "", ""};
  if (const auto arrays = array_splits(path)) return *arrays;
  const auto entries = entries_by_stem(path);
  FoundSplits splits;
  splits.train = entry_named(entries, {"train"});
  splits.valid = entry_named(entries, kValidNames);
  if (splits.train.empty()) return {path, "", ""};
  splits.test = entry_named(entries, kTestNames);
  return splits;
}

FoundPair pair_of_files(const std::string& source, const std::string& target) {
  for (const std::string& path : {source, target}) {
    const FileLook look = look_at_text(path);
    if (look.kind == FileKind::missing) {
      throw Error(ExitCode::io, fmt::format("{}: no such file", printable(path, PATH_MAX)),
                  "two paths are read as the two sides of a parallel text");
    }
    if (look.kind != FileKind::text && look.kind != FileKind::toml) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: expected one side of a parallel text, got {}",
                              printable(path, PATH_MAX), look.what),
                  "pass two text files with line-by-line translations");
    }
  }
  FoundPair pair = {{source + "," + target, "", ""}, language_of(source), language_of(target)};
  if (pair.source == pair.target || pair.source.empty() || pair.target.empty()) {
    pair.source = "source";
    pair.target = "target";
  }
  return pair;
}

std::optional<FoundPair> find_pair_in(const std::string& folder) {
  const auto entries = entries_by_stem(folder);
  std::set<std::string> languages;
  const auto [first, last] = entries.equal_range("train");
  for (auto entry = first; entry != last; ++entry) {
    if (fs::is_regular_file(entry->second)) languages.insert(language_of(entry->second.string()));
  }
  languages.erase("txt");
  languages.erase("");
  if (languages.size() != 2) return std::nullopt;
  FoundPair pair;
  pair.source = *languages.begin();
  pair.target = *languages.rbegin();
  const auto prefix = [&](const std::vector<std::string>& names) -> std::string {
    for (const std::string& name : names) {
      if (entries.count(name) >= 2) return (fs::path(folder) / name).string();
    }
    return "";
  };
  pair.splits = {prefix({"train"}), prefix(kValidNames), prefix(kTestNames)};
  return pair;
}

bool is_pair_table(const std::string& path) {
  fs::path name = fs::path(path).filename();
  if (is_compressed_name(name)) name = name.stem();
  return name.extension() == ".tsv";
}

int64_t count_pairs(const std::string& spec, const std::string& source, const std::string& target) {
  const int64_t pairs = pairs_in(find_parallel(spec, source, target));
  if (pairs > 0) return pairs;
  throw Error(ExitCode::bad_input,
              fmt::format("{}: contains no sentence pairs", printable(spec, PATH_MAX)));
}

bool has_class_folders(const std::string& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (is_array_file(entry.path().filename().string())) return true;
  }
  return class_folders_below(folder) || class_folders_below(fs::path(folder) / "train");
}

ImageCount count_images(const std::string& spec) {
  const std::unique_ptr<ImageSet> images = open_images(spec);
  return {images->count(), static_cast<int64_t>(images->classes().size())};
}

TextSize measure_text(const std::string& path) {
  TextSize size;
  std::vector<char> block(size_t{1} << 20);
  const std::vector<std::string> files = list_sources(path);
  Progress progress("measuring text", static_cast<int64_t>(files.size()), loading_progress());
  for (const std::string& file : files) {
    progress.update(size.files);
    const FileLook look = look_at_text(file);
    if (look.kind != FileKind::text && look.kind != FileKind::toml && look.kind != FileKind::json &&
        look.kind != FileKind::empty) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: expected text, got {}", printable(file, PATH_MAX), look.what),
                  "'rondo data check' lists all files that are not text");
    }
    ++size.files;
    if (!is_compressed_name(file)) {
      size.bytes += static_cast<int64_t>(fs::file_size(file));
      continue;
    }
    TextReader reader(file);
    while (const size_t got = reader.read(block.data(), block.size())) {
      size.bytes += static_cast<int64_t>(got);
    }
  }
  progress.finish();
  return size;
}

FileLook look_at_text(const std::string& path) {
  FileLook look = look_at_file(path);
  if (look.kind != FileKind::compressed || !is_compressed_name(path)) return look;
  TextReader reader(path);
  std::string front(size_t{1} << 16, '\0');
  size_t filled = 0;
  while (filled < front.size()) {
    const size_t got = reader.read(front.data() + filled, front.size() - filled);
    if (got == 0) break;
    filled += got;
  }
  front.resize(filled);
  return look_at_bytes(front, fs::path(path).stem().string());
}

std::string recipe_summary(const std::string& recipe) {
  const std::string shared = find_shared("recipes", recipe);
  return first_comment(shared.empty() ? recipe : shared);
}

}  // namespace rondo
