// Sets of labeled images in various formats.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rondo/image/decode.h"
#include "rondo/image/image.h"

namespace rondo {

constexpr int64_t kMaxImageFileBytes = int64_t{256} << 20;  // for one encoded image
constexpr int64_t kMaxImageMemoryBytes = int64_t{4} << 30;  // for a set held decompressed

// Immutable; thread-safe.
class ImageSet {
 public:
  virtual ~ImageSet() = default;
  ImageSet(const ImageSet&) = delete;
  ImageSet& operator=(const ImageSet&) = delete;

  int64_t count() const { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t i) const { return labels_[static_cast<size_t>(i)]; }

  // The meaning of labels: folder names ("n01440764") or the names in the set's own list of
  // classes; and descriptions ("tench, Tinca tinca") from a classes.tsv, otherwise the same.
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<std::string>& titles() const { return titles_; }

  // A user-readable location of image i: a path, a path within an archive, "file#17".
  virtual std::string name(int64_t i) const = 0;

  // Image i. `enough` as for decode_image(): called once, with the true size. Error{bad_input} or
  // Error{io} naming the image if it cannot be read.
  Image load(int64_t i, const EnoughSide& enough) const { return fetch(i, enough); }
  Image load(int64_t i, int64_t min_side = 0) const;

  // 16 hex digits over classes, labels and, for files, their names relative to the set's folder;
  // not over pixels, which may be terabytes. Independent of where the set is stored.
  const std::string& checksum() const { return checksum_; }

 protected:
  ImageSet() = default;
  virtual Image fetch(int64_t i, const EnoughSide& enough) const = 0;
  void seal(const std::vector<std::string>& names);  // computes the checksum

  std::vector<int64_t> labels_;
  std::vector<std::string> classes_;
  std::vector<std::string> titles_;
  std::string checksum_;
};

// Opens the set `spec` refers to, detecting its format:
//   a folder of class folders       like ImageNet's train or val; classes and files sorted by name,
//                                   .jpg .jpeg .png in any case
//   .tar, .tar.gz, .tgz, .tar.zst   of such folders, or a folder with one archive and no folders;
//                                   mapped if plain, held in memory if compressed
//   CIFAR-10 or CIFAR-100, binary   .bin or .bin.gz, a folder or an archive of them; class names
//                                   from batches.meta.txt or fine_label_names.txt
//   IDX images and labels           train-images-idx3-ubyte, plain or .gz; either file of the pair
// If there are several splits, the path continues with the name of one, also inside an archive:
//   imagenette.tar.gz/train   cifar10/test   /usr/share/datasets/fashion-mnist/t10k
// (train stands for data_batch_* and train*, test for test_batch*, test* and t10k*).
// A trailing "#FIRST:LAST" selects a part in order, "#FIRST:LAST/class" that part of every class;
// either end may be omitted, negative ones count from the end, and N% is a fraction:
// data_batch_1.bin.gz#:-1000, photos#-10%:/class
//
// Error{io} if it does not exist, Error{bad_input} if it is not a set of images or is damaged.
std::unique_ptr<ImageSet> open_images(const std::string& spec);

// A subset with the given images, in their order. Classes are unchanged.
std::unique_ptr<ImageSet> pick_images(std::unique_ptr<ImageSet> images,
                                      std::vector<int64_t> indices);

struct BadImage {
  int64_t index = 0;
  std::string name;
  std::string reason;
};

// Decodes every image in this many threads (0: one per core) and returns the unreadable ones, in
// order. Shows progress on stderr.
std::vector<BadImage> check_images(const ImageSet& images, int64_t threads = 0);

// Counts, by suffix, the files of a set of class folders that are images in unsupported formats
// (.webp, .gif, …); empty for other kinds of sets.
std::map<std::string, int64_t> unsupported_images(const std::string& spec);

}  // namespace rondo
