// The kinds of ImageSet and how they are detected. Internal to sources*.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/base/progress.h"
#include "rondo/image/archive.h"
#include "rondo/image/sources.h"

namespace rondo {

// The bytes of a file, from any source, and its name.
struct NamedBytes {
  std::string name;                   // for messages and for looking up files next to it
  std::shared_ptr<const void> owner;  // keeps the bytes alive
  std::string_view bytes;
};

// A whole file, decompressed if it ends in .gz, .tgz or .zst. Error{bad_input} above
// kMaxImageMemoryBytes.
NamedBytes read_whole(const std::string& path);

[[noreturn]] void refuse_set(const std::string& spec, const std::string& what,
                             const std::string& advice);

// Class folders on disk.
std::unique_ptr<ImageSet> open_class_folder(const std::string& folder,
                                            const ProgressOptions& shown = loading_progress());

// Class folders in an archive, below `inside` ("" for its root).
std::unique_ptr<ImageSet> open_class_archive(const std::string& path, const NamedBytes& archive,
                                             const std::vector<TarEntry>& entries,
                                             const std::string& inside);

// CIFAR files, in this order, with their class names (if empty: numbers).
std::unique_ptr<ImageSet> open_cifar(const std::vector<NamedBytes>& files,
                                     const std::vector<std::string>& class_names);

// A pair of IDX files.
std::unique_ptr<ImageSet> open_idx(const NamedBytes& images, const NamedBytes& labels);

// "train" for data_batch_3.bin.gz, "t10k" for t10k-images-idx3-ubyte; "" if the file is not a CIFAR
// or IDX image file.
std::string cifar_split(std::string_view file_name);
std::string idx_split(std::string_view file_name);

// The partner of an IDX file: labels for images, images for labels; "" if it is neither.
std::string idx_partner(const std::string& path);

// Whether `wanted`, as given by the user, refers to `split` (test also means t10k).
bool same_split(std::string_view wanted, std::string_view split);

// The description of each class from a classes.tsv in one of these folders ("id TAB words" per
// line), otherwise the classes themselves.
std::vector<std::string> class_titles(const std::vector<std::string>& classes,
                                      const std::vector<std::string>& folders);

// The last component of a path, and what precedes it ("." if nothing).
std::string base_name(const std::string& path);
std::string folder_of(const std::string& path);

}  // namespace rondo
