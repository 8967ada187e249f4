// Slices of data sets, written after a path: "novel.txt#:-5%", "train#450:/class". Used for
// documents, sentence pairs and images.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rondo {

// One end of a part. A minus sign counts from the end of the data.
struct PartEnd {
  enum class Unit { items, percent, bytes };
  double amount = 0;
  Unit unit = Unit::items;
  bool from_end = false;
};

// PATH#FIRST:LAST or PATH#FIRST:LAST/class. Either end may be omitted. A plain number counts items
// (documents, pairs, images), N% is a percentage, and NB counts bytes of text.
struct PartSpec {
  std::string path;  // without the part
  bool is_part = false;
  bool by_class = false;
  std::optional<PartEnd> first;
  std::optional<PartEnd> last;

  std::string written;  // the text after '#'

  bool uses(PartEnd::Unit unit) const;
};

// A path that exists verbatim has no part, even if it contains '#'. Throws Error{bad_input} if the
// text after the last '#' is not a part.
PartSpec parse_part(const std::string& spec);

// The position of `end` in `size` units (0 to `size`); `otherwise` if omitted. The part before an
// end and the part after it are complementary.
int64_t part_place(const std::optional<PartEnd>& end, int64_t size, int64_t otherwise);

}  // namespace rondo
