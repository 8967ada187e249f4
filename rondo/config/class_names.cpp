// Reading and writing class names.
#include "rondo/config/class_names.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"

namespace rondo {

ClassNames parse_class_names(std::string_view text, const std::string& source) {
  ClassNames names;
  for (const std::string& line : text_lines(text)) {
    const size_t tab = line.find('\t');
    names.ids.push_back(line.substr(0, tab));
    names.titles.push_back(tab == std::string::npos ? line : line.substr(tab + 1));
  }
  if (names.empty()) {
    throw Error(ExitCode::bad_input, fmt::format("{}: expected class names, got none", source),
                "write one class per line: a name, or an id, a tab and a name");
  }
  return names;
}

ClassNames read_class_names(const std::string& path) {
  return parse_class_names(read_text_file(path, kMaxClassNamesBytes), path);
}

std::string dump_class_names(const ClassNames& names) {
  std::string text;
  for (size_t i = 0; i < names.ids.size(); ++i) {
    text += names.ids[i] + "\t" + names.titles[i] + "\n";
  }
  return text;
}

}  // namespace rondo
