// Positions in data, as readers give and take them: small JSON objects that say where a reader
// stood and what it read. Internal to the readers.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace rondo {

// Error{bad_input}: a position that does not fit.
[[noreturn]] void refuse_position(const std::string& what);

// The object in `position`, which must have exactly one value for each key of `expected`, equal to
// it, and may have others.
nlohmann::json parse_position(const std::string& position, const nlohmann::json& expected);

// The value of `key`, which must be there.
const nlohmann::json& position_value(const nlohmann::json& position, const char* key);

// Whole numbers only: the library would round 1.5 and wrap -1 without a word.
int64_t whole_number(const nlohmann::json& value, int64_t low, int64_t high);

}  // namespace rondo
