// Request targets and form bodies: percent-encoding, queries, multipart/form-data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "rondo/http/exchange.h"

namespace rondo::http {

// ApiError{400} for a '%' without two hexadecimal digits.
std::string percent_decoded(std::string_view text, bool plus_is_space);

// Fills path and query from target. ApiError{400} if it is not a path.
void parse_target(Request& request);

// The parts of a multipart/form-data body by name (the first of duplicates); views into `body`.
// ApiError{400} if it is malformed or has more than 16 parts.
std::map<std::string, std::string_view> parse_multipart(const std::string& content_type,
                                                        std::string_view body);

// Whether `given` equals `expected`, in time that depends only on the length of `given`.
bool equal_in_constant_time(std::string_view given, std::string_view expected);

// The host, without brackets, of "host:port", "[::1]:port" or "host".
std::string host_of(std::string_view authority);

}  // namespace rondo::http
