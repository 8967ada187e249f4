// Translating a test set and scoring it.
#include "cli/engine/eval_translation.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/engine/decoding.h"
#include "rondo/base/error.h"
#include "rondo/base/progress.h"
#include "rondo/decode/agreement.h"
#include "rondo/eval/bleu_report.h"
#include "rondo/eval/bleu_text.h"
#include "rondo/eval/trained.h"

namespace rondo::cli {
namespace {

constexpr size_t kLinesAtOnce = 1000;

struct TestSet {
  std::vector<std::string> source;
  std::vector<std::string> target;
};

TestSet read_test(const EvalOptions& options, const PairConfig& data) {
  const std::string spec = !options.data.empty()      ? options.data
                           : options.split == "train" ? data.train
                           : options.split == "valid" ? data.valid
                                                      : data.test;
  if (spec.empty()) {
    throw Error(ExitCode::usage, fmt::format("{}: names no {} data", options.run, options.split),
                "say which sentence pairs: --data PREFIX");
  }
  TestSet test;
  PairReader reader(find_parallel(spec, data.source, data.target));
  std::string source;
  std::string target;
  while (reader.next(source, target)) {
    test.source.push_back(source);
    test.target.push_back(target);
  }
  if (test.source.empty()) throw Error(ExitCode::bad_input, fmt::format("{}: is empty", spec));
  return test;
}

struct System {
  std::vector<std::string> lines;
  Agreement as_fp32;  // with --agreement: with the network as trained in fp32,
  Agreement as_bf16;  // and in bf16, where weights are decoded as that
  double seconds = 0;
};

System translate_test(const std::string& run, const EvalOptions& options, const TestSet& test) {
  const TrainedTranslator trained = load_translation_model(run, options.tokenizer);
  TranslatorOptions how = translator_options(options.decoding);
  if (options.agreement) how.beam.beam = 1;
  Translator translator(trained.model, trained.tokenizers, how);
  const auto as_trained =
      options.agreement ? load_translation_model(run, options.tokenizer).model : nullptr;
  System system;
  const auto started = std::chrono::steady_clock::now();
  Progress progress("translate", static_cast<int64_t>(test.source.size()));
  for (size_t first = 0; first < test.source.size(); first += kLinesAtOnce) {
    const size_t last = std::min(test.source.size(), first + kLinesAtOnce);
    const std::vector<std::string> part(test.source.begin() + static_cast<int64_t>(first),
                                        test.source.begin() + static_cast<int64_t>(last));
    const std::vector<Translation> written = translator.translate(part);
    for (const Translation& t : written) system.lines.push_back(t.candidates.front().text);
    if (as_trained != nullptr) {
      system.as_fp32 += greedy_agreement(translator, *as_trained, false, part, written);
      if (how.format == nn::WeightFormat::bf16) {
        system.as_bf16 += greedy_agreement(translator, *as_trained, true, part, written);
      }
    }
    progress.update(static_cast<int64_t>(last));
  }
  progress.finish();
  system.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return system;
}

ScoredTexts::Lines stripped(const std::vector<std::string>& lines) {
  ScoredTexts::Lines views;
  views.reserve(lines.size());
  for (const std::string& line : lines) views.push_back(strip_right(line));
  return views;
}

void say_agreement(const EvalOptions& options, const System& system) {
  nlohmann::json json = {{"weights", options.decoding.weights}};
  const auto say = [&](const char* precision, const Agreement& found) {
    if (found.sentences == 0) return;
    const double share = static_cast<double>(found.same) / static_cast<double>(found.sentences);
    json[precision] = {{"sentences", found.sentences}, {"same", found.same}, {"share", share}};
    if (options.json) return;
    fmt::print(
        "{} of {} sentences ({:.1f} %) decoded with {} weights are what the network as in training "
        "writes in {}\n",
        found.same, found.sentences, 100.0 * share, options.decoding.weights, precision);
  };
  say("fp32", system.as_fp32);
  say("bf16", system.as_bf16);
  if (options.json) fmt::print("{}\n", json.dump(2));
}

}  // namespace

void evaluate_translation(const EvalOptions& options) {
  const TrainedFiles files = find_trained(options.run);
  const TestSet test = read_test(options, files.run.has_value() ? files.run->pairs : PairConfig());
  if (options.agreement) {
    return say_agreement(options, translate_test(options.run, options, test));
  }
  ScoredTexts texts;
  std::vector<System> systems = {translate_test(options.run, options, test)};
  texts.names = {options.run};
  if (!options.against.empty()) {
    systems.push_back(translate_test(options.against, options, test));
    texts.names.push_back(options.against);
  }
  for (const System& system : systems) texts.systems.push_back(stripped(system.lines));
  texts.references = {stripped(test.target)};
  ReportOptions how;
  how.bleu->tokenize = options.tokenize;
  how.confidence = true;
  const std::vector<MetricReport> reports = score_texts(texts, how);
  const double speed = static_cast<double>(test.source.size()) / systems[0].seconds;
  if (options.json) {
    nlohmann::json json = {{"sentences", test.source.size()}, {"sentences_per_second", speed}};
    for (const MetricReport& report : reports) json["scores"].push_back(report_json(report, how));
    fmt::print("{}\n", json.dump(2));
  } else if (options.score_only) {
    fmt::print("{}", report_numbers(reports[0]));
  } else {
    for (const MetricReport& report : reports) fmt::print("{}", report_text(report));
    fmt::print("{} sentences, {:.1f} sentences/s\n", test.source.size(), speed);
  }
}

}  // namespace rondo::cli
