// The kinds of ImageSet and how they are found. Internal to sources*.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/image/archive.h"
#include "rondo/image/sources.h"

namespace rondo {

// A file's bytes, wherever they come from, and what it is called.
struct NamedBytes {
  std::string name;                   // for messages, and the folder it is looked up in
  std::shared_ptr<const void> owner;  // keeps the bytes alive
  std::string_view bytes;
};

// The whole of a file, decompressed if it ends in .gz or .zst. Error{bad_input} above
// kMaxImageMemoryBytes.
NamedBytes read_whole(const std::string& path);

[[noreturn]] void refuse_set(const std::string& spec, const std::string& what,
                             const std::string& advice);

// Class folders on disk.
std::unique_ptr<ImageSet> open_class_folder(const std::string& folder);

// Class folders in an archive, below `inside` ("" for its root).
std::unique_ptr<ImageSet> open_class_archive(const std::string& path, const NamedBytes& archive,
                                             const std::vector<TarEntry>& entries,
                                             const std::string& inside);

// CIFAR files, in this order, with their class names (empty: numbers).
std::unique_ptr<ImageSet> open_cifar(const std::vector<NamedBytes>& files,
                                     const std::vector<std::string>& class_names);

// A pair of IDX files.
std::unique_ptr<ImageSet> open_idx(const NamedBytes& images, const NamedBytes& labels);

// "train" for data_batch_3.bin.gz, "test" for t10k-images-idx3-ubyte; "" for names that are no
// CIFAR or IDX images.
std::string cifar_split(std::string_view file_name);
std::string idx_split(std::string_view file_name);

// The partner of an IDX file: images for labels and labels for images; "" if it is neither.
std::string idx_partner(const std::string& path);

// Whether a user who writes `wanted` means `split` (test is also t10k).
bool same_split(std::string_view wanted, std::string_view split);

// The words for each class by a classes.tsv in one of these folders ("id TAB words" on each line),
// else the classes themselves.
std::vector<std::string> class_titles(const std::vector<std::string>& classes,
                                      const std::vector<std::string>& folders);

// The last part of a path, and what is before it ("." if nothing).
std::string base_name(const std::string& path);
std::string folder_of(const std::string& path);

}  // namespace rondo
