// rondo data get: installs the Debian package that holds a data set.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/data_sets.h"

namespace rondo::cli {
namespace {

std::vector<std::string> packaged_sets() {
  std::vector<std::string> names;
  for (const std::string& name : data_set_names()) {
    if (!find_data_set(name).package.empty()) names.push_back(name);
  }
  return names;
}

}  // namespace

void run_data_get(const DataGetOptions& options) {
  const std::string& name = options.name;
  const DataSet set = find_data_set(name);
  if (set.package.empty()) {
    throw Error(ExitCode::usage, fmt::format("data set {}: no Debian package holds it", name),
                fmt::format("Debian packages {}; provide others with --data {}=DIR",
                            join(packaged_sets(), ", "), name));
  }
  if (exists(set.folder)) {
    fmt::print("{}\n", set.folder);
    return;
  }
  const std::string install = "apt-get install -y --no-install-recommends " + set.package + " >&2";
  if (!exists("/usr/bin/apt-get")) {
    throw Error(
        ExitCode::failure,
        fmt::format("data set {}: this system has no apt-get for package {}", name, set.package),
        "get the data elsewhere and pass its location with --data");
  }
  if (geteuid() != 0) {
    throw Error(ExitCode::failure,
                fmt::format("data set {}: installing package {} needs root", name, set.package),
                "run: sudo apt-get install " + set.package);
  }
  // The name comes from our own file, never from the command line.
  if (std::system(install.c_str()) != 0 || !exists(set.folder)) {
    throw Error(ExitCode::failure,
                fmt::format("data set {}: apt-get could not install {}", name, set.package),
                "see above; run 'apt-get update' first if the package list is old or empty");
  }
  fmt::print("{}\n", set.folder);
}

}  // namespace rondo::cli
