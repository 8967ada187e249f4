// What the classes of a set of images are called, kept beside a trained network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

constexpr int64_t kMaxClassNamesBytes = int64_t{16} << 20;  // of a file of class names

struct ClassNames {
  std::vector<std::string> ids;     // "n01440764"
  std::vector<std::string> titles;  // "tench, Tinca tinca"; the same as the id where unknown

  bool empty() const { return ids.empty(); }
  int64_t count() const { return static_cast<int64_t>(ids.size()); }
};

// One class a line, in the order of their numbers: "id TAB title", or a title alone. Empty lines
// are passed over. Error{bad_input} if there are no classes; `source` begins the message.
ClassNames parse_class_names(std::string_view text, const std::string& source);
ClassNames read_class_names(const std::string& path);

// Reads back to the same.
std::string dump_class_names(const ClassNames& names);

}  // namespace rondo
