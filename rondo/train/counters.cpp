// Counters as JSON.
#include "rondo/train/counters.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "rondo/base/error.h"

namespace rondo {

std::string Counters::dump() const {
  // An infinite best (no evaluation yet) is omitted: JSON has no infinity.
  nlohmann::json json = {{"step", step},
                         {"skipped", skipped},
                         {"in_a_row", in_a_row},
                         {"since_best", since_best},
                         {"evaluation_due", evaluation_due},
                         {"seconds", seconds}};
  if (std::isfinite(best)) json["best"] = best;
  return json.dump();
}

Counters Counters::parse(const std::string& text, const std::string& source) {
  try {
    const auto json = nlohmann::json::parse(text);
    Counters c;
    c.step = json.at("step");
    c.skipped = json.at("skipped");
    c.in_a_row = json.at("in_a_row");
    c.since_best = json.at("since_best");
    c.seconds = json.at("seconds");
    c.best = json.value("best", static_cast<double>(INFINITY));
    c.evaluation_due = json.value("evaluation_due", false);
    return c;
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected the counters of a run, got {}", source, text),
                "the checkpoint was not written by 'rondo train'");
  }
}

}  // namespace rondo
