// Untrusted JSON: bounded depth, and fields read by name with type and range checks. Errors name
// the field, what was expected and what was found.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rondo/http/api_error.h"

namespace rondo::http {

// ApiError{400} for invalid JSON, or if it is nested more than `depth` levels deep.
nlohmann::json parse_json(std::string_view text, int64_t depth);

// The fields of one object. Absent or null fields have their default.
class JsonReader {
 public:
  // ApiError{400} unless it is an object. `object` must outlive the reader.
  explicit JsonReader(const nlohmann::json& object, std::string where = {});

  bool has(const char* name) const { return find(name) != nullptr; }
  const nlohmann::json* find(const char* name) const;  // null if absent or null

  bool boolean(const char* name, bool otherwise) const;
  std::string text(const char* name, const std::string& otherwise) const;
  // A value outside [low, high] is ApiError{422}.
  int64_t integer(const char* name, int64_t otherwise, int64_t low, int64_t high) const;
  double number(const char* name, double otherwise, double low, double high) const;
  uint64_t seed(const char* name, uint64_t otherwise) const;
  // One string, or a list of at most `most`.
  std::vector<std::string> texts(const char* name, size_t most) const;
  // ApiError{400} if the field exists with a value other than `harmless`: unsupported features must
  // not be ignored silently.
  void refuse(const char* name, const nlohmann::json& harmless) const;

  [[noreturn]] void wrong_type(const char* name, const std::string& expected,
                               const nlohmann::json& got) const;
  std::string path(const char* name) const;

 private:
  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace rondo::http
