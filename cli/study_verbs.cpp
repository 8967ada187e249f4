// Command lines of rondo study, one per kind, and of rondo report.
#include "cli/study_verbs.h"

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/engine_loader.h"
#include "cli/study_options.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/report/run_report.h"

namespace rondo::cli {
namespace {

struct StudyKind {
  VerbSpec verb;
  const char* task;  // required of its models; "" = any
};

constexpr StudyKind kStudies[] = {
    {{"cka", "how similar the representations of two networks are, level by level",
      "rondo study cka runs/vanilla runs/ring -o cka.html"},
     ""},
    {{"attention-distance", "how far attention reaches, by level and head",
      "rondo study attention-distance runs/vit runs/ring -o distance.html"},
     ""},
    {{"state", "the contribution of the recurrent states to each token of a text",
      "rondo study state runs/rec --data book.txt -o state.html"},
     "lm"},
    {{"coefficients", "how residual coefficients, gates and signals change during training",
      "rondo study coefficients runs/sret -o coefficients.html"},
     ""},
    {{"signals", "how RingFormer's level signals modulate the shared block",
      "rondo study signals runs/ring -o signals.html"},
     ""},
    {{"activations", "feature maps and attention on images, cross-attention on sentences",
      "rondo study activations runs/sret --input photo.jpg -o maps.html"},
     ""},
    {{"landscape", "the loss around trained weights; rerun the command to resume",
      "rondo study landscape runs/deit runs/sret --points 25 -o landscape.html"},
     ""},
    {{"cost", "multiply-adds by groups and loops; scores versus cost",
      "rondo study cost runs/* -o cost.html"},
     ""},
};

void add_study(CLI::App& study, const StudyKind& kind, int& exit_code) {
  auto options = std::make_shared<StudyOptions>();
  options->kind = kind.verb.name;
  add_verb(study, kind.verb, options)->callback([options, task = kind.task, &exit_code] {
    for (const std::string& run : options->runs) check_trained(run, task);
    exit_code = run_engine("study", *options);
  });
}

void run_report(const RunReportOptions& options) {
  const RunReport report = report_runs(options.runs);
  const std::string path = options.output.empty() && !options.json ? "report.html" : options.output;
  if (!path.empty()) write_file(path, report.html);
  options.json ? fmt::print("{}", report.json) : fmt::print("{}{}\n", report.text, path);
}

}  // namespace

void add_study_verbs(CLI::App& app, int& exit_code) {
  CLI::App* study = add_verb(app, {"study", "analyze trained models: pages with figures", ""});
  study->require_subcommand(1);
  for (const StudyKind& kind : kStudies) add_study(*study, kind, exit_code);
  auto report = std::make_shared<RunReportOptions>();
  add_verb(app,
           {"report", "compare runs: curves, scores and configuration differences",
            "rondo report runs/a runs/b -o report.html"},
           report)
      ->callback([report] { run_report(*report); });
}

}  // namespace rondo::cli
