// Where images come from: sets of labeled images, whatever they are kept in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rondo/image/decode.h"
#include "rondo/image/image.h"

namespace rondo {

constexpr int64_t kMaxImageFileBytes = int64_t{256} << 20;  // of one image, encoded
constexpr int64_t kMaxImageMemoryBytes = int64_t{4} << 30;  // of a set that is held unpacked

// Immutable; safe from any number of threads.
class ImageSet {
 public:
  virtual ~ImageSet() = default;
  ImageSet(const ImageSet&) = delete;
  ImageSet& operator=(const ImageSet&) = delete;

  int64_t count() const { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t i) const { return labels_[static_cast<size_t>(i)]; }

  // What labels stand for: names of folders ("n01440764"), or those of the set's own list of
  // classes; and in words ("tench, Tinca tinca") where a classes.tsv says so, else the same.
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<std::string>& titles() const { return titles_; }

  // Where image i is, for people: a path, a path within an archive, "file#17".
  virtual std::string name(int64_t i) const = 0;

  // Image i. `enough` as for decode_image(): asked once, with the true size.
  // Error{bad_input} or Error{io} naming the image if it cannot be read.
  Image load(int64_t i, const EnoughSide& enough) const { return fetch(i, enough); }
  Image load(int64_t i, int64_t min_side = 0) const;

  // 16 hex digits over classes, labels and, for files, their names below the set's folder; not over
  // pixels, which may be terabytes. Where the set lies makes no difference.
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

// Opens what `spec` names, by looking at it:
//   a folder of class folders       as ImageNet's train or val; classes and files sorted by name,
//                                   .jpg .jpeg .png in any letter case
//   .tar, .tar.gz, .tgz, .tar.zst   of such folders, or a folder with one archive and no folders; a
//                                   plain one is mapped, a compressed one held in memory
//   CIFAR-10 or CIFAR-100, binary   .bin or .bin.gz, a folder or an archive of them; names of the
//                                   classes from batches.meta.txt or fine_label_names.txt
//   IDX images and labels           train-images-idx3-ubyte, plain or .gz; either file of the pair
// Where there are several splits the path goes on with the name of one, inside an archive too:
//   imagenette.tar.gz/train   cifar10/test   /usr/share/datasets/fashion-mnist/t10k
// (train stands for data_batch_* and train*, test for test_batch*, test* and t10k*).
// At the end "#FIRST:LAST" takes a part in order, "#FIRST:LAST/class" that part of every class;
// either end may be left out, negative ones count from the end, and N% is a share:
// data_batch_1.bin.gz#:-1000, photos#-10%:/class
//
// Error{io} if there is nothing, Error{bad_input} if it is no set of images or a damaged one.
std::unique_ptr<ImageSet> open_images(const std::string& spec);

// A part of a set, as the images given, in their order. Classes stay as they are.
std::unique_ptr<ImageSet> pick_images(std::unique_ptr<ImageSet> images,
                                      std::vector<int64_t> indices);

struct BadImage {
  int64_t index = 0;
  std::string name;
  std::string reason;
};

// Decodes every image, in this many threads (0: one per core), and returns those that cannot be
// read, in order. Shows its progress on stderr.
std::vector<BadImage> check_images(const ImageSet& images, int64_t threads = 0);

// Files of a set of class folders that are images of kinds which cannot be read (.webp, .gif, …),
// by ending; nothing of other kinds of sets.
std::map<std::string, int64_t> unsupported_images(const std::string& spec);

}  // namespace rondo
