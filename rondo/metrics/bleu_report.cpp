// Scoring of systems, and text and JSON reports.
#include "rondo/metrics/bleu_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace rondo {
namespace {

// The two metrics behind a common interface.
struct BleuMetric {
  using Statistics = BleuStatistics;
  BleuOptions options;

  std::string name() const { return "BLEU"; }
  std::string signature(size_t references, const std::string& sampling) const {
    return bleu_signature(options, references, sampling);
  }
  Statistics count(std::string_view line, const std::vector<std::string_view>& references) const {
    return bleu_statistics(line, references, options);
  }
  double operator()(const Statistics& sum) const { return bleu_score(sum, options).score; }
  void tell(const Statistics& sum, SystemScore& system) const {
    system.details = " " + bleu_score(sum, options).details();
    system.counts = sum;
  }
};

struct ChrfMetric {
  using Statistics = ChrfStatistics;
  ChrfOptions options;

  std::string name() const { return chrf_name(options); }
  std::string signature(size_t references, const std::string& sampling) const {
    return chrf_signature(options, references, sampling);
  }
  Statistics count(std::string_view line, const std::vector<std::string_view>& references) const {
    return chrf_statistics(line, references, options);
  }
  double operator()(const Statistics& sum) const { return chrf_score(sum, options); }
  void tell(const Statistics& /*sum*/, SystemScore& /*system*/) const {}
};

template <class Metric>
std::vector<typename Metric::Statistics> count_sentences(const Metric& metric,
                                                         const ScoredTexts::Lines& system,
                                                         const ScoredTexts& texts) {
  std::vector<typename Metric::Statistics> sentences;
  sentences.reserve(system.size());
  std::vector<std::string_view> references(texts.references.size());
  for (size_t i = 0; i < system.size(); ++i) {
    for (size_t r = 0; r < references.size(); ++r) references[r] = texts.references[r][i];
    sentences.push_back(metric.count(system[i], references));
  }
  return sentences;
}

template <class Metric>
MetricReport measure(const Metric& metric, const ScoredTexts& texts, const ReportOptions& options) {
  const bool sampled = options.confidence || texts.systems.size() == 2;
  MetricReport report;
  report.name = metric.name();
  report.signature = metric.signature(
      texts.references.size(), sampled ? bootstrap_signature(options.bootstrap) : std::string());
  std::vector<std::vector<typename Metric::Statistics>> sentences;
  for (size_t i = 0; i < texts.systems.size(); ++i) {
    sentences.push_back(count_sentences(metric, texts.systems[i], texts));
    const typename Metric::Statistics sum = sum_of(sentences.back());
    SystemScore system;
    system.name = texts.names[i];
    system.score = metric(sum);
    metric.tell(sum, system);
    report.systems.push_back(std::move(system));
  }
  if (sentences.size() == 2) {
    report.paired = paired_bootstrap(sentences[0], sentences[1], metric, options.bootstrap);
    report.systems[0].interval = report.paired->system;
    report.systems[1].interval = report.paired->baseline;
  } else if (options.confidence) {
    report.systems[0].interval = bootstrap_interval(sentences[0], metric, options.bootstrap);
  }
  return report;
}

nlohmann::json interval_json(const Interval& interval) {
  return {{"mean", interval.mean},
          {"low", interval.low},
          {"high", interval.high},
          {"half_width", interval.half_width()}};
}

nlohmann::json system_json(const SystemScore& system, const ReportOptions& options) {
  nlohmann::json json = {{"file", system.name}, {"score", system.score}};
  if (system.interval) json["confidence"] = interval_json(*system.interval);
  if (system.counts && options.bleu) {
    const BleuScore score = bleu_score(*system.counts, *options.bleu);
    json["verbose"] = score.details();
    json["precisions"] = score.precisions;
    json["correct"] = system.counts->correct;
    json["total"] = system.counts->total;
    json["brevity_penalty"] = score.brevity_penalty;
    json["ratio"] = score.ratio();
    json["hypothesis_length"] = score.hypothesis_length;
    json["reference_length"] = score.reference_length;
  }
  return json;
}

// "33.12", and with an interval "33.12 (μ = 33.10 ± 0.61, 95 % from 32.49 to 33.71)".
std::string score_text(const SystemScore& system) {
  std::string text = fmt::format("{:.2f}", system.score);
  if (system.interval) {
    text += fmt::format(" (μ = {:.2f} ± {:.2f}, 95 % from {:.2f} to {:.2f})", system.interval->mean,
                        system.interval->half_width(), system.interval->low, system.interval->high);
  }
  return text;
}

}  // namespace

std::vector<MetricReport> score_texts(const ScoredTexts& texts, const ReportOptions& options) {
  std::vector<MetricReport> reports;
  if (options.bleu) reports.push_back(measure(BleuMetric{*options.bleu}, texts, options));
  if (options.chrf) reports.push_back(measure(ChrfMetric{*options.chrf}, texts, options));
  return reports;
}

nlohmann::json report_json(const MetricReport& report, const ReportOptions& options) {
  nlohmann::json json = system_json(report.systems[0], options);
  json["name"] = report.name;
  json["signature"] = report.signature;
  if (report.paired) {
    json["against"] = system_json(report.systems[1], options);
    json["difference"] = {{"score", report.difference()},
                          {"confidence", interval_json(report.paired->difference)},
                          {"p_value", report.paired->p_value}};
  }
  return json;
}

std::string report_text(const MetricReport& report) {
  if (!report.paired) {
    const SystemScore& system = report.systems[0];
    return fmt::format("{} = {}{}\n", report.signature, score_text(system), system.details);
  }
  std::string text = report.signature + "\n";
  for (const SystemScore& system : report.systems) {
    text += fmt::format("  {} = {}{}\n", system.name, score_text(system), system.details);
  }
  const Interval& interval = report.paired->difference;
  return text + fmt::format(
                    "  difference = {:+.2f} (μ = {:+.2f} ± {:.2f}, 95 % from {:+.2f} to {:+.2f}), "
                    "p = {:.4f}\n",
                    report.difference(), interval.mean, interval.half_width(), interval.low,
                    interval.high, report.paired->p_value);
}

std::string report_numbers(const MetricReport& report) {
  std::string text = fmt::format("{:.2f}", report.systems[0].score);
  if (report.paired) {
    text += fmt::format(" {:.2f} {:+.2f} {:.4f}", report.systems[1].score, report.difference(),
                        report.paired->p_value);
  }
  return text + "\n";
}

}  // namespace rondo
