// Parsing positions, which come from files that may be damaged or belong to other runs.
#include "rondo/data/data_position.h"

#include <fmt/core.h>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {

void refuse_position(const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("data position: {}", what),
              "resume with the data and options the run was started with, or start a new run");
}

const nlohmann::json& position_value(const nlohmann::json& position, const char* key) {
  const auto found = position.find(key);
  if (found == position.end()) {
    refuse_position(fmt::format("'{}' is missing", key));
  }
  return *found;
}

nlohmann::json parse_position(const std::string& position, const nlohmann::json& expected) {
  nlohmann::json json = nlohmann::json::parse(position, nullptr, false);
  if (!json.is_object()) {
    refuse_position("not a JSON object");
  }
  for (const auto& [key, value] : expected.items()) {
    const nlohmann::json& got = position_value(json, key.c_str());
    if (got != value) {
      refuse_position(fmt::format("saved with {} = {}, but now it is {}", key,
                                  printable(got.dump()), value.dump()));
    }
  }
  return json;
}

int64_t whole_number(const nlohmann::json& value, int64_t low, int64_t high) {
  const bool fits =
      value.is_number_integer() &&
      !(value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) &&
      value.get<int64_t>() >= low && value.get<int64_t>() <= high;
  if (!fits) {
    refuse_position(fmt::format("expected a whole number between {} and {}, got {}", low, high,
                                printable(value.dump())));
  }
  return value.get<int64_t>();
}

}  // namespace rondo
