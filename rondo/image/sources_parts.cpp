// Shared by the kinds of sets: reading files, names, titles, checksums; subsets.
#include "rondo/image/sources_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <map>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/config/class_names.h"
#include "rondo/data/text_source.h"

namespace rondo {
namespace {

// FNV-1a over strings and numbers, including their boundaries.
class SetHash {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      byte(static_cast<uint8_t>(c));
    }
    add(static_cast<uint64_t>(text.size()));
  }
  void add(uint64_t number) {
    for (int i = 0; i < 8; ++i) {
      byte(static_cast<uint8_t>(number >> (8 * i)));
    }
  }
  uint64_t value() const { return value_; }

 private:
  void byte(uint8_t b) { value_ = (value_ ^ b) * 0x100000001B3; }
  uint64_t value_ = 0xCBF29CE484222325;
};

class PickedSet : public ImageSet {
 public:
  PickedSet(std::unique_ptr<ImageSet> images, std::vector<int64_t> indices)
      : images_(std::move(images)), indices_(std::move(indices)) {
    classes_ = images_->classes();
    titles_ = images_->titles();
    for (const int64_t i : indices_) {
      require(i >= 0 && i < images_->count(), "images: image {} does not exist, there are {}", i,
              images_->count());
      labels_.push_back(images_->label(i));
    }
    SetHash hash;
    for (const int64_t i : indices_) {
      hash.add(static_cast<uint64_t>(i));
    }
    seal({images_->checksum(), fmt::format("{:016x}", hash.value())});
  }

  std::string name(int64_t i) const override { return images_->name(at(i)); }

 protected:
  Image fetch(int64_t i, const EnoughSide& enough) const override {
    return images_->load(at(i), enough);
  }

 private:
  int64_t at(int64_t i) const { return indices_[static_cast<size_t>(i)]; }

  std::unique_ptr<ImageSet> images_;
  std::vector<int64_t> indices_;
};

bool is_compressed(std::string_view name) {
  const size_t dot = name.find_last_of('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view end = name.substr(dot);
  return end == ".gz" || end == ".zst" || end == ".tgz";
}

}  // namespace

Image ImageSet::load(int64_t i, int64_t min_side) const {
  return fetch(i, [min_side](const ImageSize&) { return min_side; });
}

void ImageSet::seal(const std::vector<std::string>& names) {
  SetHash hash;
  for (const std::string& name : classes_) {
    hash.add(name);
  }
  for (const int64_t label : labels_) {
    hash.add(static_cast<uint64_t>(label));
  }
  for (const std::string& name : names) {
    hash.add(name);
  }
  checksum_ = fmt::format("{:016x}", hash.value());
}

std::unique_ptr<ImageSet> pick_images(std::unique_ptr<ImageSet> images,
                                      std::vector<int64_t> indices) {
  return std::make_unique<PickedSet>(std::move(images), std::move(indices));
}

NamedBytes read_whole(const std::string& path) {
  NamedBytes file;
  file.name = path;
  if (is_compressed(path)) {
    const auto text = std::make_shared<const std::string>(read_source(path, kMaxImageMemoryBytes));
    file.bytes = *text;
    file.owner = text;
  } else {
    const auto mapped = std::make_shared<const MappedFile>(path);
    file.bytes = {reinterpret_cast<const char*>(mapped->data()), mapped->size()};
    file.owner = mapped;
  }
  return file;
}

void refuse_set(const std::string& spec, const std::string& what, const std::string& advice) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", printable(spec, PATH_MAX), what), advice);
}

std::vector<std::string> class_titles(const std::vector<std::string>& classes,
                                      const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const std::string path = folder + "/classes.tsv";
    if (!exists(path)) {
      continue;
    }
    std::map<std::string, std::string> words;
    for (const std::string& line : text_lines(read_text_file(path, kMaxClassNamesBytes))) {
      const size_t tab = line.find('\t');
      if (tab != std::string::npos) {
        words.emplace(line.substr(0, tab), line.substr(tab + 1));
      }
    }
    std::vector<std::string> titles;
    for (const std::string& name : classes) {
      const auto found = words.find(name);
      titles.push_back(found == words.end() ? name : found->second);
    }
    return titles;
  }
  return classes;
}

std::string base_name(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace rondo
