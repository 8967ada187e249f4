// rondo score: BLEU and chrF of translations, with confidence intervals and a comparison of two
// systems.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/data/text_source.h"
#include "rondo/metrics/bleu_report.h"
#include "rondo/metrics/bleu_text.h"

namespace rondo::cli {
namespace {

// A file's lines as sacreBLEU reads them: terminated by \n only, without trailing white space.
struct LineFile {
  std::string name;
  std::string text;
  std::vector<std::string_view> lines;  // into the text

  explicit LineFile(const std::string& path);
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

 private:
  void add_line(std::string_view line);
};

LineFile::LineFile(const std::string& path)
    : name(path == "-" ? "standard input" : printable(path, PATH_MAX)),
      text(read_source(path == "-" ? "/dev/stdin" : path)) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    add_line(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  if (lines.empty()) throw Error(ExitCode::bad_input, name + ": expected lines of text, got none");
}

void LineFile::add_line(std::string_view line) {
  const auto fail = [&](const std::string& what) {
    throw Error(ExitCode::bad_input, fmt::format("{}:{}: {}", name, lines.size() + 1, what));
  };
  if (line.size() > kMaxSegmentBytes) {
    fail(fmt::format("expected a line of at most {}, got {}", human_bytes(kMaxSegmentBytes),
                     human_bytes(static_cast<int64_t>(line.size()))));
  }
  if (!valid_utf8(line)) fail("expected UTF-8, got other bytes");
  lines.push_back(strip_right(line));
}

// The references, and the one or two systems scored against them.
struct Translations {
  std::vector<std::unique_ptr<LineFile>> systems;
  std::vector<std::unique_ptr<LineFile>> references;

  size_t count() const { return systems[0]->lines.size(); }
};

Translations read_translations(const ScoreOptions& options) {
  Translations all;
  all.systems.push_back(std::make_unique<LineFile>(options.hypotheses));
  const auto add = [&](std::vector<std::unique_ptr<LineFile>>& files, const std::string& path) {
    files.push_back(std::make_unique<LineFile>(path));
    if (files.back()->lines.size() == all.count()) return;
    throw Error(ExitCode::bad_input,
                fmt::format("{} has {} lines, but {} has {}", all.systems[0]->name,
                            with_commas(static_cast<int64_t>(all.count())), files.back()->name,
                            with_commas(static_cast<int64_t>(files.back()->lines.size()))),
                "line i of every file must correspond to the same sentence");
  };
  for (const std::string& path : options.references) add(all.references, path);
  if (!options.against.empty()) add(all.systems, options.against);
  return all;
}

ReportOptions report_options(const ScoreOptions& options) {
  const std::vector<std::string> metrics = split(options.metrics, ',');
  const auto wanted = [&](const char* metric) {
    return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
  };
  ReportOptions report;
  report.bleu->tokenize = options.tokenize;
  report.bleu->smooth = options.smooth;
  report.bleu->effective_order = options.effective_order;
  report.bleu->lowercase = options.lowercase;
  report.chrf->word_order = static_cast<size_t>(options.chrf_word_order);
  report.chrf->lowercase = options.chrf_lowercase;
  if (!wanted("bleu")) report.bleu.reset();
  if (!wanted("chrf")) report.chrf.reset();
  report.confidence = options.confidence;
  report.bootstrap = {options.samples, options.seed};
  return report;
}

}  // namespace

void run_score(const ScoreOptions& options) {
  const ReportOptions how = report_options(options);
  const Translations all = read_translations(options);
  ScoredTexts texts;
  for (const auto& system : all.systems) {
    texts.names.push_back(system->name);
    texts.systems.push_back(system->lines);
  }
  for (const auto& reference : all.references) texts.references.push_back(reference->lines);
  const std::vector<MetricReport> reports = score_texts(texts, how);
  if (options.json) {
    nlohmann::json json = {{"sentences", all.count()}, {"references", all.references.size()}};
    for (const MetricReport& report : reports) json["scores"].push_back(report_json(report, how));
    fmt::print("{}\n", json.dump(2));
    return;
  }
  for (const MetricReport& report : reports) {
    fmt::print("{}", options.score_only ? report_numbers(report) : report_text(report));
  }
}

}  // namespace rondo::cli
