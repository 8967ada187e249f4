// Runs side by side: their curves, their best scores, and the keys in which they differ.
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

// Error{bad_input} if one of them is no run folder.
RunReport report_runs(const std::vector<std::string>& runs);

}  // namespace rondo
