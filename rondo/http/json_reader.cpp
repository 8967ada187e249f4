// Reading bounded JSON.
#include "rondo/http/json_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "rondo/base/text.h"

namespace rondo::http {

using nlohmann::json;

json parse_json(std::string_view text, int64_t most_levels) {
  const auto shallow = [most_levels](int depth, json::parse_event_t event, json&) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= most_levels) {
      throw ApiError(400, fmt::format("the JSON is nested more than {} levels deep", most_levels));
    }
    return true;
  };
  // The parser takes it for the end of the text, whatever follows.
  if (text.find('\0') != std::string_view::npos) {
    throw ApiError(400, "the body is not valid JSON: it contains a zero byte");
  }
  try {
    return json::parse(text, shallow);
  } catch (const json::exception& error) {
    throw ApiError(400, "the body is not valid JSON: " + printable(error.what(), 200));
  }
}

JsonReader::JsonReader(const json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) {
    throw ApiError(400, fmt::format("expected a JSON object, got {}", object_.type_name()), where_);
  }
}

std::string JsonReader::path(const char* name) const {
  return where_.empty() ? name : where_ + "." + name;
}

const json* JsonReader::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonReader::wrong_type(const char* name, const std::string& expected, const json& got) const {
  throw ApiError(400, fmt::format("{}: expected {}, got {}", path(name), expected, got.type_name()),
                 path(name));
}

bool JsonReader::boolean(const char* name, bool otherwise) const {
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) wrong_type(name, "true or false", *value);
  return value->get<bool>();
}

std::string JsonReader::text(const char* name, const std::string& otherwise) const {
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) wrong_type(name, "a string", *value);
  return value->get<std::string>();
}

int64_t JsonReader::integer(const char* name, int64_t otherwise, int64_t low, int64_t high) const {
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number_integer()) wrong_type(name, "a whole number", *value);
  const bool huge = value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX};
  const int64_t number = huge ? INT64_MAX : value->get<int64_t>();
  if (number < low || number > high) {
    throw ApiError(
        422, fmt::format("{}: expected {} to {}, got {}", path(name), low, high, value->dump()),
        path(name));
  }
  return number;
}

double JsonReader::number(const char* name, double otherwise, double low, double high) const {
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) wrong_type(name, "a number", *value);
  const double number = value->get<double>();
  if (!(number >= low && number <= high)) {
    throw ApiError(422, fmt::format("{}: expected {} to {}, got {}", path(name), low, high, number),
                   path(name));
  }
  return number;
}

uint64_t JsonReader::seed(const char* name, uint64_t otherwise) const {
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number_integer()) wrong_type(name, "a whole number", *value);
  return value->is_number_unsigned() ? value->get<uint64_t>()
                                     : static_cast<uint64_t>(value->get<int64_t>());
}

std::vector<std::string> JsonReader::texts(const char* name, size_t most) const {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) wrong_type(name, "a string or a list of strings", *value);
  if (value->size() > most) {
    throw ApiError(
        422,
        fmt::format("{}: expected at most {} strings, got {}", path(name), most, value->size()),
        path(name));
  }
  std::vector<std::string> all;
  for (const json& one : *value) {
    if (!one.is_string()) wrong_type(name, "a string or a list of strings", one);
    all.push_back(one.get<std::string>());
  }
  return all;
}

void JsonReader::refuse(const char* name, const json& harmless) const {
  const json* value = find(name);
  if (value == nullptr || *value == harmless || (value->is_structured() && value->empty())) return;
  throw ApiError(400, fmt::format("{}: not supported by this server; omit it", path(name)),
                 path(name));
}

}  // namespace rondo::http
