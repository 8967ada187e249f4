// BLEU and chrF of one or two systems on the same sentences, with intervals, as text or JSON: the
// output of 'rondo score' for files and of 'rondo eval' for new translations.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "rondo/metrics/bleu.h"
#include "rondo/metrics/bootstrap.h"
#include "rondo/metrics/chrf.h"

namespace rondo {

// Aligned lines: line i of every list belongs to the same sentence. The views must outlive it.
struct ScoredTexts {
  using Lines = std::vector<std::string_view>;
  std::vector<std::string> names;  // of the systems
  std::vector<Lines> systems;      // one, or two to compare
  std::vector<Lines> references;   // at least one
};

struct ReportOptions {
  std::optional<BleuOptions> bleu = BleuOptions();  // nullopt: skip
  std::optional<ChrfOptions> chrf = ChrfOptions();
  bool confidence = false;  // 95 % intervals; two systems always have them
  BootstrapOptions bootstrap;
};

// One system under one metric.
struct SystemScore {
  std::string name;
  double score = 0;
  std::string details;
  std::optional<Interval> interval;
  std::optional<BleuStatistics> counts;  // BLEU's
};

struct MetricReport {
  std::string name;
  std::string signature;
  std::vector<SystemScore> systems;
  std::optional<PairedBootstrap> paired;  // if there are two systems

  double difference() const { return systems[0].score - systems[1].score; }
};

std::vector<MetricReport> score_texts(const ScoredTexts& texts, const ReportOptions& options);

// "BLEU|nrefs:1|… = 33.12 65.1/39.9/…"; for two systems, a line each and one for the difference.
std::string report_text(const MetricReport& report);
// "33.12"; for two systems "33.12 32.70 +0.42 0.0310".
std::string report_numbers(const MetricReport& report);
nlohmann::json report_json(const MetricReport& report, const ReportOptions& options);

}  // namespace rondo
