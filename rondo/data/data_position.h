// Reader positions: small JSON objects that record where a reader is and what it reads. Internal to
// the readers.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace rondo {

// Throws Error{bad_input} for a position that does not match.
[[noreturn]] void refuse_position(const std::string& what);

// Parses `position`, which must contain every key of `expected` exactly once with an equal value;
// other keys are allowed.
nlohmann::json parse_position(const std::string& position, const nlohmann::json& expected);

// The value of `key`, which must exist.
const nlohmann::json& position_value(const nlohmann::json& position, const char* key);

// Integers only: the library would silently round 1.5 and wrap -1.
int64_t whole_number(const nlohmann::json& value, int64_t low, int64_t high);

}  // namespace rondo
