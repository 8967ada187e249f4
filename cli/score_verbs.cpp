// Command line of rondo score.
#include "cli/score_verbs.h"

#include <fmt/format.h>

#include "cli/usage.h"
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
  ScoreOptions& o = *options;
  CLI::App* verb =
      app.add_subcommand("score", "BLEU and chrF of translations, as sacreBLEU counts them");
  verb->add_option("hypotheses", o.hypotheses,
                   "translations, one per line (- = stdin; .gz and .zst are read too)")
      ->required();
  verb->add_option("references", o.references,
                   "what they should be, line by line; one file or several")
      ->required();
  verb->add_option("--against", o.against,
                   "compare with these translations: difference and paired bootstrap test");
  verb->add_option("--metrics", o.metrics, "bleu, chrf or both, with a comma between them")
      ->check(known_metrics())
      ->capture_default_str();
  verb->add_option("--tokenize", o.tokenize, "for BLEU; none = the text is tokenised already")
      ->check(CLI::IsMember({"13a", "none", "char"}))
      ->capture_default_str();
  verb->add_option("--smooth", o.smooth, "for BLEU, where an order of n-grams has no match")
      ->check(CLI::IsMember({"exp", "none", "floor", "add-k"}))
      ->capture_default_str();
  verb->add_flag("--effective-order", o.effective_order,
                 "for BLEU of single sentences: leave out orders of which there are no n-grams");
  verb->add_flag("--lowercase", o.lowercase, "disregard case");
  verb->add_option("--chrf-word-order", o.chrf_word_order, "2 = chrF++")->check(whole_number(0, 2));
  verb->add_flag("--confidence", o.confidence, "95 % interval by bootstrap resampling");
  verb->add_option("--samples", o.samples, "resamples of --confidence and --against")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  verb->add_option("--seed", o.seed, "of the resamples")
      ->check(whole_number(0, INT64_MAX))
      ->capture_default_str();
  verb->add_flag("-b,--score-only", o.score_only, "print only the numbers");
  verb->add_flag("--json", o.json, "print JSON");
  verb->callback([options] { run_score(*options); });
}

}  // namespace rondo::cli
