// Command line of rondo score.
#include "cli/score_verbs.h"

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/verbs.h"
#include "rondo/base/text.h"

namespace rondo::cli {
namespace {

CLI::Validator known_metrics() {
  const auto check = [](std::string& text) -> std::string {
    for (const std::string& metric : split(text, ',')) {
      if (metric != "bleu" && metric != "chrf")
        return fmt::format("expected bleu or chrf, got '{}'", printable(metric));
    }
    return {};
  };
  return CLI::Validator(check, "");
}

}  // namespace

void add_score_verbs(CLI::App& app) {
  auto options = std::make_shared<ScoreOptions>();
  CLI::App* verb = add_verb(app,
                            {"score", "score translations with BLEU and chrF, as sacreBLEU does",
                             "rondo score output.txt reference.txt --confidence"},
                            options);
  verb->get_option("--metrics")->check(known_metrics());
  verb->callback([options] { run_score(*options); });
}

}  // namespace rondo::cli
