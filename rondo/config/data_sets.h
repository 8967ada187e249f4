// Named data sets (recipes/data.toml) and the layout of their folders.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rondo/base/config.h"

namespace rondo {

struct DataSet {
  std::string about;
  std::string task;     // "lm", "translation" or "image"
  std::string package;  // Debian package that provides it; "" = pass it with --data
  std::string folder;   // where the package installs it
  std::string train;    // relative to the folder; may end in a '#' part
  std::string valid;
  std::string test;
};

template <class V>
void describe(V& v, DataSet& c) {
  v.field("about", c.about, "description");
  v.field("task", c.task, "task", one_of({"lm", "translation", "image"}));
  v.field("package", c.package, "Debian package that provides it");
  v.field("folder", c.folder, "where the package installs it");
  v.field("train", c.train, "training data, relative to the folder");
  v.field("valid", c.valid, "validation data, relative to the folder");
  v.field("test", c.test, "test data, relative to the folder");
}

// Names in file order.
std::vector<std::string> data_set_names();
// Throws Error{usage} listing the known names if there is no such data set.
DataSet find_data_set(const std::string& name);

// Folders given on the command line, by data set name; "" applies to any.
using DataFolders = std::map<std::string, std::string>;
// Parses "NAME=DIR" or "DIR". Throws Error{usage} for an unknown name or an empty folder.
DataFolders parse_data_folders(const std::vector<std::string>& given);

// [data] for a data set, from its folder in `folders`, otherwise the package's. Throws Error{io} if
// the given folder does not exist, Error{bad_input} with advice if there is no folder.
ConfigTable data_set_layer(const std::string& name, const DataFolders& folders);

}  // namespace rondo
