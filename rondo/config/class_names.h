// Class names of an image data set, stored with a trained network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

constexpr int64_t kMaxClassNamesBytes = int64_t{16} << 20;  // of a class name file

struct ClassNames {
  std::vector<std::string> ids;     // "n01440764"
  std::vector<std::string> titles;  // "tench, Tinca tinca"; the id if unknown

  bool empty() const { return ids.empty(); }
  int64_t count() const { return static_cast<int64_t>(ids.size()); }
};

// One class per line, in class order: "id TAB title", or only a title. Empty lines are skipped.
// Throws Error{bad_input} if there are no classes; `source` is the prefix of the message.
ClassNames parse_class_names(std::string_view text, const std::string& source);
ClassNames read_class_names(const std::string& path);

// The inverse of parse_class_names().
std::string dump_class_names(const ClassNames& names);

}  // namespace rondo
