// Inspection of data paths for found_data.cpp: splits, pairs, classes, sizes. Internal to
// rondo/project.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rondo/base/file_kind.h"

namespace rondo {

// Training data, and evaluation data if given.
struct FoundSplits {
  std::string train;
  std::string valid;  // "" = none
  std::string test;
};

// The entries named train, valid (val, validation, dev) and test of a folder that has train:
// folders, or files with any extension; train and test of CIFAR or IDX files. Otherwise all of
// `path` is training data.
FoundSplits find_splits(const std::string& path);

struct FoundPair {
  FoundSplits splits;
  std::string source;  // languages, from the file extensions
  std::string target;
};
// Two parallel text files. Throws Error{io} if one is missing, Error{bad_input} if it is not text.
FoundPair pair_of_files(const std::string& source, const std::string& target);
// A folder that contains train.XX and train.YY.
std::optional<FoundPair> find_pair_in(const std::string& folder);
// A .tsv (or .tsv.gz, .tsv.zst) file.
bool is_pair_table(const std::string& path);
int64_t count_pairs(const std::string& spec, const std::string& source, const std::string& target);

// Whether the folder, or its train subfolder, has subfolders with images, or the folder is another
// image data set (CIFAR, IDX).
bool has_class_folders(const std::string& folder);
struct ImageCount {
  int64_t images = 0;
  int64_t classes = 0;
};
ImageCount count_images(const std::string& spec);

// The amount of text in `path`; compressed files count with their uncompressed size.
struct TextSize {
  int64_t bytes = 0;
  int64_t files = 0;
};
TextSize measure_text(const std::string& path);

// Like look_at_file(), but looks inside .gz and .zst files.
FileLook look_at_text(const std::string& path);

// The first sentence of a recipe's comment.
std::string recipe_summary(const std::string& recipe);

}  // namespace rondo
