// Parts of data sets, as users write them after a path: "novel.txt#:-5%", "train#450:/class". Used
// for documents, sentence pairs and images alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rondo {

// One end of a part. Counted from the end of the data if it was written with a minus sign.
struct PartEnd {
  enum class Unit { items, percent, bytes };
  double amount = 0;
  Unit unit = Unit::items;
  bool from_end = false;
};

// PATH#FIRST:LAST or PATH#FIRST:LAST/class. Either end may be left out. A number counts items
// (documents, pairs, images); N% is a share, and NB counts bytes of text.
struct PartSpec {
  std::string path;  // without the part
  bool is_part = false;
  bool by_class = false;
  std::optional<PartEnd> first;
  std::optional<PartEnd> last;

  std::string written;  // what follows '#'

  bool uses(PartEnd::Unit unit) const;
};

// A path that exists as it is written has no part, whatever characters it is made of.
// Error{bad_input} if what follows the last '#' is not a part.
PartSpec parse_part(const std::string& spec);

// Where `end` lies among `size` units (0 to `size`); `otherwise` if it was left out. The part
// before an end and the part from it on make up the whole.
int64_t part_place(const std::optional<PartEnd>& end, int64_t size, int64_t otherwise);

}  // namespace rondo
