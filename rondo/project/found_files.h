// What lies at a path, for found_data.cpp: splits, pairs, classes, sizes. Internal to
// rondo/project.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rondo/base/file_kind.h"

namespace rondo {

// What to learn from, and to evaluate on where that is given.
struct FoundSplits {
  std::string train;
  std::string valid;  // "" = none
  std::string test;
};

// In a folder with train and valid (val, validation, dev) in it, folders or files of any ending,
// those; else all of `path` is to learn from.
FoundSplits find_splits(const std::string& path);

struct FoundPair {
  FoundSplits splits;
  std::string source;  // languages, by the files' endings
  std::string target;
};
// Two files of the same number of lines. Error{bad_input} if they are no texts.
FoundPair pair_of_files(const std::string& source, const std::string& target);
// A folder with train.XX and train.YY in it.
std::optional<FoundPair> find_pair_in(const std::string& folder);
// A .tsv (or .tsv.gz, .tsv.zst) file.
bool is_pair_table(const std::string& path);
int64_t count_pairs(const std::string& spec, const std::string& source, const std::string& target);

// Whether the folder, or its train folder, has folders with images in them, or is another set of
// images (CIFAR, IDX).
bool has_class_folders(const std::string& folder);
struct ImageCount {
  int64_t images = 0;
  int64_t classes = 0;
};
ImageCount count_images(const std::string& spec);

// Text below `path`; of compressed files what they expand to.
struct TextSize {
  int64_t bytes = 0;
  int64_t files = 0;
};
TextSize measure_text(const std::string& path);

// As look_at_file(), but of the contents of .gz and .zst files.
FileLook look_at_text(const std::string& path);

// The first sentence of a recipe's comment.
std::string recipe_summary(const std::string& recipe);

}  // namespace rondo
