// Reading recipes/data.toml.
#include "rondo/config/data_sets.h"

#include <fmt/format.h>

#include "rondo/base/config_node.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/data_paths.h"
#include "rondo/config/share.h"

namespace rondo {
namespace {

const ConfigTable& data_file() {
  static const ConfigTable table = ConfigTable::from_file(share_folder() + "/recipes/data.toml");
  return table;
}

// "DIR/part#rest" for a part such as "train#:-1000"; "." is the folder itself. If only a compressed
// version of the file exists, uses that.
std::string below(const std::string& folder, const std::string& part) {
  if (part.empty()) return "";
  const size_t mark = part.find('#');
  const std::string path = part.substr(0, mark);
  const std::string rest = mark == std::string::npos ? "" : part.substr(mark);
  std::string whole = path == "." ? folder : folder + "/" + path;
  for (const char* ending : {".gz", ".zst"}) {
    if (!exists(whole) && exists(whole + ending)) whole += ending;
  }
  return whole + rest;
}

std::string folder_of(const std::string& name, const DataSet& set, const DataFolders& folders) {
  for (const std::string& key : {name, std::string()}) {
    const auto found = folders.find(key);
    if (found == folders.end()) continue;
    if (exists(found->second)) return found->second;
    throw Error(ExitCode::io, fmt::format("--data {}: no such folder", found->second));
  }
  if (!set.folder.empty() && exists(set.folder)) return set.folder;
  if (!set.package.empty()) {
    throw Error(ExitCode::bad_input,
                fmt::format("data set {}: Debian package {} is not installed", name, set.package),
                fmt::format("install it: rondo data get {}", name));
  }
  throw Error(
      ExitCode::bad_input, fmt::format("data set {} ({}): no folder given", name, set.about),
      fmt::format("pass its folder with --data {0}=DIR, or use other data with --set data.train=…",
                  name));
}

}  // namespace

std::vector<std::string> data_set_names() { return data_file().keys(); }

DataSet find_data_set(const std::string& name) {
  if (!data_file().is_table(name)) {
    throw Error(ExitCode::usage, fmt::format("unknown data set '{}'", printable(name)),
                fmt::format("data sets in {}: {}", data_file().source_name(),
                            join(data_set_names(), ", ")));
  }
  DataSet set;
  read_config(data_file(), name, set, {"set"});
  return set;
}

DataFolders parse_data_folders(const std::vector<std::string>& given) {
  DataFolders folders;
  for (const std::string& item : given) {
    const size_t equals = item.find('=');
    const std::string name = equals == std::string::npos ? "" : item.substr(0, equals);
    const std::string folder = equals == std::string::npos ? item : item.substr(equals + 1);
    if (folder.empty()) {
      throw Error(ExitCode::usage, fmt::format("--data {}: expected NAME=DIR", item));
    }
    if (!name.empty()) find_data_set(name);
    folders[name] = expand_home(folder);
  }
  return folders;
}

ConfigTable data_set_layer(const std::string& name, const DataFolders& folders) {
  const DataSet set = find_data_set(name);
  const std::string folder = folder_of(name, set, folders);
  std::string text = "[data]\n";
  for (const auto& [key, part] : {std::pair{"train", set.train}, std::pair{"valid", set.valid},
                                  std::pair{"test", set.test}}) {
    if (!part.empty()) text += fmt::format("{} = {}\n", key, toml_text(below(folder, part)));
  }
  ConfigTable layer = ConfigTable::from_string(text, "data set " + name);
  layer.merge(data_file().section(name + ".set"));
  return layer;
}

}  // namespace rondo
