// Class folders, on disk and in tar archives.
#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <map>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/data/text_source.h"
#include "rondo/image/sources_parts.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderAdvice =
    "expected one folder per class with .jpg, .jpeg or .png files";

bool split_folder(const std::string& name) {
  return name == "train" || name == "val" || name == "valid" || name == "validation" ||
         name == "test";
}

// Folders named after splits contain the classes one level further down.
void refuse_splits(const std::string& spec, const std::vector<std::string>& folders) {
  if (!folders.empty() && std::all_of(folders.begin(), folders.end(), split_folder)) {
    refuse_set(spec, fmt::format("there are several splits: {}", join(folders, ", ")),
               fmt::format("name one of them at the end of the path, as in {}/{}", printable(spec),
                           folders.front()));
  }
}

class FolderSet : public ImageSet {
 public:
  FolderSet(const std::string& root, const ProgressOptions& shown) : root_(root) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
      std::error_code ignored;
      const std::string name = entry.path().filename().string();
      if (name[0] != '.' && entry.is_directory(ignored)) {
        classes_.push_back(name);
      }
    }
    if (error) {
      throw Error(ExitCode::io,
                  fmt::format("{}: cannot list: {}", printable(root, PATH_MAX), error.message()));
    }
    std::sort(classes_.begin(), classes_.end());
    refuse_splits(root, classes_);
    Progress progress("listing class folders", static_cast<int64_t>(classes_.size()), shown);
    for (size_t label = 0; label < classes_.size(); ++label) {
      add_class(static_cast<int64_t>(label));
      progress.update(static_cast<int64_t>(label) + 1);
    }
    progress.finish();
    if (files_.empty()) {
      refuse_set(root, "no images in class folders", kFolderAdvice);
    }
    titles_ = class_titles(classes_, {root_, root_ + "/.."});
    seal(files_);
  }

  std::string name(int64_t i) const override {
    return root_ + "/" + files_[static_cast<size_t>(i)];
  }

 protected:
  Image fetch(int64_t i, const EnoughSide& enough) const override {
    const std::string path = name(i);
    return decode_image(read_text_file(path, kMaxImageFileBytes), path, enough);
  }

 private:
  void add_class(int64_t label) {
    const std::string folder = root_ + "/" + classes_[static_cast<size_t>(label)];
    const size_t before = files_.size();
    for (const std::string& path : list_sources(folder)) {
      if (is_image_name(path)) {
        files_.push_back(path.substr(root_.size() + 1));
        labels_.push_back(label);
      }
    }
    if (files_.size() == before) {
      log_warn("{}: a class folder without images", printable(folder, PATH_MAX));
    }
  }

  std::string root_;
  std::vector<std::string> files_;  // paths relative to the root
};

// The path of an image split at slashes, without the prefix common to all.
struct ArchivePath {
  std::vector<std::string> parts;
  const TarEntry* entry = nullptr;
};

bool hidden_path(const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](const std::string& part) { return part.empty() || part[0] == '.'; });
}

// Removes leading folders shared by all paths, as long as a class and a file remain.
void strip_common(std::vector<ArchivePath>& paths) {
  while (!paths.empty()) {
    const std::string first = paths.front().parts.front();
    for (const ArchivePath& path : paths) {
      if (path.parts.size() < 3 || path.parts.front() != first) {
        return;
      }
    }
    for (ArchivePath& path : paths) {
      path.parts.erase(path.parts.begin());
    }
  }
}

// The paths below the folder `inside`, relative to it.
std::vector<ArchivePath> below(const std::vector<ArchivePath>& paths,
                               const std::vector<std::string>& inside) {
  std::vector<ArchivePath> found;
  for (const ArchivePath& path : paths) {
    if (path.parts.size() > inside.size() &&
        std::equal(inside.begin(), inside.end(), path.parts.begin())) {
      ArchivePath rest = path;
      rest.parts.erase(rest.parts.begin(),
                       rest.parts.begin() + static_cast<std::ptrdiff_t>(inside.size()));
      found.push_back(std::move(rest));
    }
  }
  return found;
}

class ArchiveSet : public ImageSet {
 public:
  ArchiveSet(const std::string& path, const NamedBytes& archive,
             const std::vector<ArchivePath>& paths)
      : path_(path), archive_(archive) {
    // The map sorts by class and name; of duplicate files it keeps the later one, as tar does.
    std::map<std::string, std::map<std::string, const TarEntry*>> by_class;
    for (const ArchivePath& image : paths) {
      if (image.parts.size() >= 2) {
        by_class[image.parts.front()][join(image.parts, "/")] = image.entry;
      }
    }
    std::vector<std::string> names;
    for (const auto& [name, files] : by_class) {
      for (const auto& [file, entry] : files) {
        labels_.push_back(static_cast<int64_t>(classes_.size()));
        entries_.push_back(*entry);
        names.push_back(file);
      }
      classes_.push_back(name);
    }
    titles_ = class_titles(classes_, {folder_of(path)});
    seal(names);
  }

  std::string name(int64_t i) const override {
    return path_ + "/" + entries_[static_cast<size_t>(i)].name;
  }

 protected:
  Image fetch(int64_t i, const EnoughSide& enough) const override {
    const TarEntry& entry = entries_[static_cast<size_t>(i)];
    return decode_image(archive_.bytes.substr(entry.begin, entry.size), name(i), enough);
  }

 private:
  std::string path_;
  NamedBytes archive_;
  std::vector<TarEntry> entries_;
};

}  // namespace

std::unique_ptr<ImageSet> open_class_folder(const std::string& folder,
                                            const ProgressOptions& shown) {
  return std::make_unique<FolderSet>(folder, shown);
}

std::unique_ptr<ImageSet> open_class_archive(const std::string& path, const NamedBytes& archive,
                                             const std::vector<TarEntry>& entries,
                                             const std::string& inside) {
  std::vector<ArchivePath> paths;
  for (const TarEntry& entry : entries) {
    ArchivePath image{split(entry.name, '/'), &entry};
    if (is_image_name(entry.name) && !hidden_path(image.parts)) {
      paths.push_back(std::move(image));
    }
  }
  if (!inside.empty()) {
    const std::vector<std::string> wanted = split(inside, '/');
    std::vector<ArchivePath> found = below(paths, wanted);
    if (found.empty()) {  // the archive's single top folder may be omitted
      strip_common(paths);
      found = below(paths, wanted);
    }
    if (found.empty()) {
      refuse_set(path, fmt::format("no images below '{}'", printable(inside)), kFolderAdvice);
    }
    paths = std::move(found);
  }
  strip_common(paths);
  std::vector<std::string> folders;
  for (const ArchivePath& image : paths) {
    if (image.parts.size() >= 2 &&
        std::find(folders.begin(), folders.end(), image.parts.front()) == folders.end() &&
        folders.size() < 8) {
      folders.push_back(image.parts.front());
    }
  }
  if (folders.empty()) {
    refuse_set(path, "no images in class folders", kFolderAdvice);
  }
  refuse_splits(inside.empty() ? path : path + "/" + inside, folders);
  return std::make_unique<ArchiveSet>(path, archive, paths);
}

}  // namespace rondo
