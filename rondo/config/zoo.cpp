// The table of named models.
#include "rondo/config/zoo.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries = [] {
    std::vector<ZooEntry> all;
    add_ringformer(all);
    add_block_recurrent(all);
    add_sliced_recursive(all);
    add_own(all);
    return all;
  }();
  return entries;
}

const ZooEntry& find_model(const std::string& name) {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  const std::string guess = did_you_mean(name, names);
  throw Error(ExitCode::usage, fmt::format("unknown model '{}'", name),
              guess.empty() ? "'rondo models' lists all names" : guess);
}

}  // namespace rondo
