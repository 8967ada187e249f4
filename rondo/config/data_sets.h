// Data sets by name (recipes/data.toml): where in a folder their parts are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rondo/base/config.h"

namespace rondo {

struct DataSet {
  std::string about;
  std::string task;     // "lm", "translation" or "image"
  std::string package;  // Debian package that holds it; "" = it has to be given with --data
  std::string folder;   // where that package puts it
  std::string train;    // below the folder; what follows '#' is a part of it
  std::string valid;
  std::string test;
};

template <class V>
void describe(V& v, DataSet& c) {
  v.field("about", c.about, "what it is");
  v.field("task", c.task, "what it is for", one_of({"lm", "translation", "image"}));
  v.field("package", c.package, "Debian package that holds it");
  v.field("folder", c.folder, "where the package puts it");
  v.field("train", c.train, "training data, below the folder");
  v.field("valid", c.valid, "validation data, below the folder");
  v.field("test", c.test, "test data, below the folder");
}

// Names in the order of the file.
std::vector<std::string> data_set_names();
// Error{usage} with the nearest name if there is none.
DataSet find_data_set(const std::string& name);

// Folders given on the command line, by the name of a data set; "" stands for any.
using DataFolders = std::map<std::string, std::string>;
// From "NAME=DIR" or "DIR" each. Error{usage} for an unknown name or an empty folder.
DataFolders parse_data_folders(const std::vector<std::string>& given);

// [data] for a data set: its folder from `folders`, or else the package's. Error{bad_input} if
// neither is there, with what to do.
ConfigTable data_set_layer(const std::string& name, const DataFolders& folders);

}  // namespace rondo
