// Sets of small images in arrays: CIFAR and IDX.
#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "rondo/base/files.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"
#include "rondo/config/class_names.h"
#include "rondo/image/sources_parts.h"

namespace rondo {
namespace {

bool begins(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// "0", "1", ...
std::vector<std::string> numbered_classes(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    names.push_back(std::to_string(i));
  }
  return names;
}

// The list of class names that comes with CIFAR, if it is in the folder.
std::vector<std::string> cifar_names_in(const std::string& folder) {
  for (const char* name : {"batches.meta.txt", "fine_label_names.txt"}) {
    const std::string path = folder + "/" + name;
    if (exists(path)) {
      return text_lines(read_text_file(path, kMaxClassNamesBytes));
    }
  }
  return {};
}

class CifarSet : public ImageSet {
 public:
  CifarSet(const std::vector<NamedBytes>& files, const std::vector<std::string>& class_names)
      : files_(files) {
    for (const NamedBytes& file : files_) {
      const CifarRecords records = parse_cifar(file.bytes, file.name);
      if (!kinds_.empty() && records.record != kinds_.front().record) {
        refuse_set(file.name, "CIFAR-10 and CIFAR-100 files are mixed", "keep them in two folders");
      }
      kinds_.push_back(records);
      starts_.push_back(count());
      for (int64_t i = 0; i < records.count; ++i) {
        const size_t at = static_cast<size_t>(i) * records.record + records.label_at;
        labels_.push_back(static_cast<uint8_t>(file.bytes[at]));
      }
    }
    const std::vector<std::string> names =
        class_names.empty() ? cifar_names_in(folder_of(files_.front().name)) : class_names;
    const int64_t classes = kinds_.front().classes;
    classes_ = static_cast<int64_t>(names.size()) == classes ? names : numbered_classes(classes);
    titles_ = classes_;
    seal({});
  }

  std::string name(int64_t i) const override {
    const size_t file = file_of(i);
    return fmt::format("{}#{}", files_[file].name, i - starts_[file]);
  }

 protected:
  Image fetch(int64_t i, const EnoughSide& enough) const override {
    (void)enough({kCifarSide, kCifarSide});
    const size_t file = file_of(i);
    const CifarRecords& records = kinds_[file];
    const size_t at =
        static_cast<size_t>(i - starts_[file]) * records.record + records.label_at + 1;
    const auto* planes = reinterpret_cast<const uint8_t*>(files_[file].bytes.data()) + at;
    constexpr size_t kArea = kCifarSide * kCifarSide;
    Image image(kCifarSide, kCifarSide);
    for (size_t pixel = 0; pixel < kArea; ++pixel) {
      for (size_t c = 0; c < 3; ++c) {
        image.pixels[pixel * 3 + c] = planes[c * kArea + pixel];
      }
    }
    return image;
  }

 private:
  size_t file_of(int64_t i) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), i);
    return static_cast<size_t>(after - starts_.begin()) - 1;
  }

  std::vector<NamedBytes> files_;
  std::vector<CifarRecords> kinds_;
  std::vector<int64_t> starts_;  // index of each file's first image
};

class IdxSet : public ImageSet {
 public:
  IdxSet(const NamedBytes& images, const NamedBytes& labels) : images_(images) {
    const IdxArray pixels = parse_idx(images.bytes, images.name);
    const IdxArray numbers = parse_idx(labels.bytes, labels.name);
    if (pixels.shape.size() != 3 || numbers.shape.size() != 1 ||
        pixels.shape[0] != numbers.shape[0]) {
      refuse_set(
          images.name,
          fmt::format("expected images [n, height, width] and labels [n], got {} and {} axes "
                      "with {} and {} entries",
                      pixels.shape.size(), numbers.shape.size(), with_commas(pixels.shape[0]),
                      with_commas(numbers.shape[0])),
          fmt::format("the labels are {}", printable(labels.name, PATH_MAX)));
    }
    size_ = {pixels.shape[2], pixels.shape[1]};
    if (size_.width > DecodeLimits().side || size_.height > DecodeLimits().side) {
      refuse_set(images.name, fmt::format("its images are {} x {}", size_.width, size_.height),
                 "check that this is the intended file");
    }
    begin_ = pixels.begin;
    for (const char label : labels.bytes.substr(numbers.begin)) {
      labels_.push_back(static_cast<uint8_t>(label));
    }
    const int64_t last = *std::max_element(labels_.begin(), labels_.end());
    classes_ = numbered_classes(last + 1);
    titles_ = class_titles(classes_, {folder_of(images.name)});
    seal({});
  }

  std::string name(int64_t i) const override { return fmt::format("{}#{}", images_.name, i); }

 protected:
  Image fetch(int64_t i, const EnoughSide& enough) const override {
    (void)enough(size_);
    const auto area = static_cast<size_t>(size_.width * size_.height);
    const auto* gray = reinterpret_cast<const uint8_t*>(images_.bytes.data()) + begin_ +
                       static_cast<size_t>(i) * area;
    Image image(size_.width, size_.height);
    for (size_t pixel = 0; pixel < area; ++pixel) {
      std::fill_n(image.pixels.begin() + static_cast<std::ptrdiff_t>(pixel * 3), 3, gray[pixel]);
    }
    return image;
  }

 private:
  NamedBytes images_;
  ImageSize size_;
  size_t begin_ = 0;
};

}  // namespace

std::unique_ptr<ImageSet> open_cifar(const std::vector<NamedBytes>& files,
                                     const std::vector<std::string>& class_names) {
  require(!files.empty(), "CIFAR: expected at least 1 file, got none");
  return std::make_unique<CifarSet>(files, class_names);
}

std::unique_ptr<ImageSet> open_idx(const NamedBytes& images, const NamedBytes& labels) {
  return std::make_unique<IdxSet>(images, labels);
}

std::string cifar_split(std::string_view file_name) {
  if (file_name.find(".bin") == std::string_view::npos) {
    return "";
  }
  if (begins(file_name, "data_batch") || begins(file_name, "train")) {
    return "train";
  }
  return begins(file_name, "test") ? "test" : "";
}

std::string idx_split(std::string_view file_name) {
  const size_t images = file_name.find("images");
  if (images == std::string_view::npos || file_name.find("idx3-ubyte") == std::string_view::npos) {
    return "";
  }
  std::string_view prefix = file_name.substr(0, images);
  while (!prefix.empty() && (prefix.back() == '-' || prefix.back() == '.')) {
    prefix.remove_suffix(1);
  }
  return prefix.empty() ? "images" : std::string(prefix);
}

std::string idx_partner(const std::string& path) {
  std::string name = base_name(path);
  const bool images = name.find("idx3-ubyte") != std::string::npos;
  const std::string word = images ? "images" : "labels";
  const std::string rank = images ? "idx3-ubyte" : "idx1-ubyte";
  const size_t word_at = name.find(word);
  const size_t rank_at = name.find(rank);
  if (word_at == std::string::npos || rank_at == std::string::npos) {
    return "";
  }
  name.replace(rank_at, rank.size(), images ? "idx1-ubyte" : "idx3-ubyte");
  name.replace(word_at, word.size(), images ? "labels" : "images");
  return path.substr(0, path.size() - base_name(path).size()) + name;
}

bool same_split(std::string_view wanted, std::string_view split) {
  return wanted == split || (wanted == "test" && split == "t10k");
}

}  // namespace rondo
