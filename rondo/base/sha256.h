// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), with which the processes of a group prove that
// they share a secret.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rondo {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(std::string_view data);
// As 64 hexadecimal digits.
std::string hmac_sha256(std::string_view key, std::string_view data);

// Compares two texts in time independent of where they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace rondo
