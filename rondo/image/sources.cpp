// Detecting what a path refers to, and what all sets share.
#include "rondo/image/sources.h"

#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/part_spec.h"
#include "rondo/base/text.h"
#include "rondo/data/text_source.h"
#include "rondo/image/sources_parts.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSetAdvice =
    "use a folder of class folders, a .tar or .tar.gz of one, CIFAR .bin files, or a pair of IDX "
    "files";

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

bool compressed_name(std::string_view name) {
  return ends_with(name, ".gz") || ends_with(name, ".zst");
}

std::string_view without_compression(std::string_view name) {
  return compressed_name(name) ? name.substr(0, name.find_last_of('.')) : name;
}

bool archive_name(std::string_view name) {
  return ends_with(without_compression(name), ".tar") || ends_with(name, ".tgz");
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) {
      names.push_back(entry.path().filename().string());
    }
  }
  if (error) {
    throw Error(ExitCode::io,
                fmt::format("{}: cannot list: {}", printable(folder, PATH_MAX), error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The split that `wanted` refers to, or the only one if `wanted` is empty.
std::string choose_split(const std::string& spec, const std::vector<std::string>& splits,
                         const std::string& wanted) {
  std::vector<std::string> different;
  for (const std::string& split : splits) {
    if (std::find(different.begin(), different.end(), split) == different.end()) {
      different.push_back(split);
    }
  }
  if (wanted.empty() && different.size() == 1) {
    return different.front();
  }
  for (const std::string& split : different) {
    if (!wanted.empty() && same_split(wanted, split)) {
      return split;
    }
  }
  const std::string there = join(different, ", ");
  refuse_set(spec,
             wanted.empty()
                 ? fmt::format("there are several splits: {}", there)
                 : fmt::format("split '{}' does not exist, only {}", printable(wanted), there),
             fmt::format("name one of them at the end of the path, as in {}/{}", printable(spec),
                         different.front()));
}

// The CIFAR files of a folder, or null if it has none.
std::unique_ptr<ImageSet> try_cifar_folder(const std::string& folder, const std::string& wanted) {
  std::vector<std::string> names;
  std::vector<std::string> splits;
  const std::vector<std::string> all = files_in(folder);
  for (const std::string& name : all) {
    // If a file exists both plain and compressed, the plain one is used.
    const bool again = compressed_name(name) &&
                       std::binary_search(all.begin(), all.end(), without_compression(name));
    if (!cifar_split(name).empty() && !again) {
      names.push_back(name);
      splits.push_back(cifar_split(name));
    }
  }
  if (names.empty()) {
    return nullptr;
  }
  const std::string split = choose_split(folder, splits, wanted);
  std::vector<NamedBytes> files;
  for (size_t i = 0; i < names.size(); ++i) {
    if (splits[i] == split) {
      files.push_back(read_whole(folder + "/" + names[i]));
    }
  }
  return open_cifar(files, {});
}

std::unique_ptr<ImageSet> open_idx_file(const std::string& path) {
  const std::string partner = idx_partner(path);
  std::string other = partner;
  if (!exists(other)) {  // one of the pair may be compressed and the other not
    other = compressed_name(partner) ? std::string(without_compression(partner)) : partner + ".gz";
  }
  if (!exists(other)) {
    throw Error(ExitCode::io,
                fmt::format("{}: its partner file does not exist: {}", printable(path, PATH_MAX),
                            printable(partner, PATH_MAX)),
                "IDX images and labels come in pairs with matching names");
  }
  const bool given_images = !idx_split(base_name(path)).empty();
  const std::string& images = given_images ? path : other;
  const std::string& labels = given_images ? other : path;
  return open_idx(read_whole(images), read_whole(labels));
}

std::unique_ptr<ImageSet> try_idx_folder(const std::string& folder, const std::string& wanted) {
  std::vector<std::string> names;
  std::vector<std::string> splits;
  for (const std::string& name : files_in(folder)) {
    if (!idx_split(name).empty()) {
      names.push_back(name);
      splits.push_back(idx_split(name));
    }
  }
  if (names.empty()) {
    return nullptr;
  }
  const std::string split = choose_split(folder, splits, wanted);
  const auto at = std::find(splits.begin(), splits.end(), split) - splits.begin();
  return open_idx_file(folder + "/" + names[static_cast<size_t>(at)]);
}

std::unique_ptr<ImageSet> open_archive(const std::string& path, const std::string& inside) {
  const NamedBytes archive = read_whole(path);
  const std::vector<TarEntry> entries = list_tar(archive.bytes, path);
  std::vector<const TarEntry*> found;
  std::vector<std::string> splits;
  std::vector<std::string> class_names;
  for (const TarEntry& entry : entries) {
    const std::string name = base_name(entry.name);
    if (!cifar_split(name).empty() && !compressed_name(name)) {
      found.push_back(&entry);
      splits.push_back(cifar_split(name));
    } else if (name == "batches.meta.txt" || name == "fine_label_names.txt") {
      class_names = text_lines(archive.bytes.substr(entry.begin, entry.size));
    }
  }
  if (found.empty()) {
    return open_class_archive(path, archive, entries, inside);
  }
  const std::string split = choose_split(path, splits, inside);
  std::vector<NamedBytes> files;
  for (size_t i = 0; i < found.size(); ++i) {
    if (splits[i] == split) {
      files.push_back({path + "/" + found[i]->name, archive.owner,
                       archive.bytes.substr(found[i]->begin, found[i]->size)});
    }
  }
  std::sort(files.begin(), files.end(),
            [](const NamedBytes& a, const NamedBytes& b) { return a.name < b.name; });
  return open_cifar(files, class_names);
}

// The archive in a folder that contains exactly one and no folders; otherwise "".
std::string only_archive(const std::string& folder) {
  std::string found;
  for (const std::string& name : files_in(folder)) {
    if (archive_name(name)) {
      if (!found.empty()) {
        return "";
      }
      found = folder;
      found.append("/").append(name);
    }
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    std::error_code ignored;
    if (entry.is_directory(ignored) && entry.path().filename().string()[0] != '.') {
      return "";
    }
  }
  return found;
}

std::unique_ptr<ImageSet> open_place(const std::string& path, const std::string& inside) {
  if (fs::is_directory(path)) {
    if (std::unique_ptr<ImageSet> images = try_idx_folder(path, inside)) {
      return images;
    }
    if (std::unique_ptr<ImageSet> images = try_cifar_folder(path, inside)) {
      return images;
    }
    if (const std::string archive = only_archive(path); !archive.empty()) {
      return open_archive(archive, inside);
    }
    if (inside.empty()) {
      return open_class_folder(path);
    }
    throw Error(ExitCode::io, fmt::format("{}: does not contain '{}'", printable(path, PATH_MAX),
                                          printable(inside)));
  }
  const std::string name = base_name(path);
  if (archive_name(name)) {
    return open_archive(path, inside);
  }
  if (!inside.empty()) {
    refuse_set(path, "not a folder or tar archive", kSetAdvice);
  }
  if (!idx_partner(path).empty()) {
    return open_idx_file(path);
  }
  if (ends_with(without_compression(name), ".bin")) {
    return open_cifar({read_whole(path)}, {});
  }
  refuse_set(path, "not a set of images", kSetAdvice);
}

std::unique_ptr<ImageSet> apply_slice(std::unique_ptr<ImageSet> images, const PartSpec& slice,
                                      const std::string& spec) {
  if (slice.uses(PartEnd::Unit::bytes)) {
    refuse_set(spec, "a part of an image set cannot be given in bytes",
               "count images, or give a percentage");
  }
  std::vector<std::vector<int64_t>> groups(slice.by_class ? images->classes().size() : 1);
  for (int64_t i = 0; i < images->count(); ++i) {
    groups[slice.by_class ? static_cast<size_t>(images->label(i)) : 0].push_back(i);
  }
  std::vector<int64_t> kept;
  for (const std::vector<int64_t>& group : groups) {
    const auto size = static_cast<int64_t>(group.size());
    const int64_t last = part_place(slice.last, size, size);
    for (int64_t i = part_place(slice.first, size, 0); i < last; ++i) {
      kept.push_back(group[static_cast<size_t>(i)]);
    }
  }
  if (kept.empty()) {
    refuse_set(spec, "the part selects no images", "choose another part");
  }
  std::sort(kept.begin(), kept.end());
  return pick_images(std::move(images), std::move(kept));
}

}  // namespace

std::unique_ptr<ImageSet> open_images(const std::string& spec) {
  const PartSpec slice = parse_part(spec);
  std::string path = slice.path;
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  // A path that does not exist is looked up inside the part of it that does.
  std::string inside;
  while (!path.empty() && !exists(path)) {
    const size_t slash = path.find_last_of('/');
    if (slash == std::string::npos || slash == 0) {
      break;
    }
    inside.insert(0, inside.empty() ? "" : "/").insert(0, path, slash + 1);
    path.resize(slash);
  }
  const bool could_hold =
      exists(path) && (inside.find('/') == std::string::npos || archive_name(base_name(path)));
  if (!could_hold) {
    throw Error(ExitCode::io,
                fmt::format("{}: no such file or folder", printable(slice.path, PATH_MAX)),
                kSetAdvice);
  }
  std::unique_ptr<ImageSet> images = open_place(path, inside);
  return slice.is_part ? apply_slice(std::move(images), slice, spec) : std::move(images);
}

}  // namespace rondo
