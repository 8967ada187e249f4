// From what a user types to a configuration.
#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/safetensors.h"
#include "rondo/model/zoo.h"

namespace rondo {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

ConfigTable table_of_model_file(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const auto found = file.metadata().find(kModelConfigKey);
  if (found == file.metadata().end()) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: holds weights but no configuration (metadata '{}' is missing)",
                            path, kModelConfigKey),
                "name the model and pass this file with --weights");
  }
  return ConfigTable::from_string(found->second, path + " (configuration)");
}

}  // namespace

ResolvedModel resolve_model(const std::string& given, const std::vector<std::string>& assignments) {
  ResolvedModel model;
  model.name = given;
  ConfigTable table;
  if (ends_with(given, ".safetensors")) {
    table = table_of_model_file(given);
    model.weights = given;
  } else if (ends_with(given, ".toml") || exists(given)) {
    table = ConfigTable::from_file(given);
  } else {
    table = ConfigTable::from_string(dump_model_config(find_model(given).config()), given);
  }
  for (const std::string& assignment : assignments) table.set(assignment);
  model.config = read_model_config(table);
  return model;
}

}  // namespace rondo
