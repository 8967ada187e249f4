// Compares runs: their curves, best scores, and differing configuration keys.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace rondo {

struct RunReport {
  std::string html;
  std::string json;
  std::string text;  // for the terminal
};

// Error{bad_input} if one of them is not a run folder.
RunReport report_runs(const std::vector<std::string>& runs);

}  // namespace rondo
