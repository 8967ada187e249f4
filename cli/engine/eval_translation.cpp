// Translates a test set and scores the result.
#include "cli/engine/eval_tasks.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/engine/decoding.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/data/parallel_text.h"
#include "rondo/infer/agreement.h"
#include "rondo/infer/load.h"
#include "rondo/metrics/bleu_report.h"
#include "rondo/metrics/bleu_text.h"

namespace rondo::cli {
namespace {

constexpr size_t kLinesAtOnce = 1000;

struct TestSet {
  std::vector<std::string> source;
  std::vector<std::string> target;
};

TestSet read_test(const EvalOptions& options) {
  const TrainedFiles files = find_trained(options.run);
  const PairConfig data = files.run.has_value() ? files.run->pairs : PairConfig();
  const std::string spec = test_source(options);
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
  Agreement as_fp32;  // --agreement with the training network in fp32,
  Agreement as_bf16;  // and in bf16 if decoding uses bf16 weights
  double seconds = 0;
};

System translate_test(const EvalOptions& options, const TestSet& test) {
  const TrainedTranslator trained =
      load_translation_model(options.run, options.tokenizer, verify_as(options.load));
  TranslatorOptions how = translator_options(options.decoding);
  if (options.agreement) how.beam.beam = 1;
  const Translator translator(compile(*trained.model, options.decoding), trained.tokenizers, how);
  System system;
  const auto started = std::chrono::steady_clock::now();
  Progress progress("translate", static_cast<int64_t>(test.source.size()));
  for (size_t first = 0; first < test.source.size(); first += kLinesAtOnce) {
    const size_t last = std::min(test.source.size(), first + kLinesAtOnce);
    const std::vector<std::string> part(test.source.begin() + static_cast<int64_t>(first),
                                        test.source.begin() + static_cast<int64_t>(last));
    const std::vector<Translation> written = translator.translate(part);
    for (const Translation& t : written) system.lines.push_back(t.candidates.front().text);
    if (options.agreement) {
      system.as_fp32 += greedy_agreement(translator, *trained.model, false, part, written);
      if (options.decoding.precision == "bf16") {
        system.as_bf16 += greedy_agreement(translator, *trained.model, true, part, written);
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
  nlohmann::json json = {{"precision", options.decoding.precision}};
  const auto say = [&](const char* precision, const Agreement& found) {
    if (found.sentences == 0) return;
    const double share = static_cast<double>(found.same) / static_cast<double>(found.sentences);
    json[precision] = {{"sentences", found.sentences}, {"same", found.same}, {"share", share}};
    if (options.json) return;
    fmt::print("{} of {} ({:.1f} %): fast decoding in {} agrees with the training network in {}\n",
               found.same, counted(found.sentences, "sentence"), 100.0 * share,
               options.decoding.precision, precision);
  };
  say("fp32", system.as_fp32);
  say("bf16", system.as_bf16);
  if (options.json) fmt::print("{}\n", json.dump(2));
}

TestItems items_of(const System& system, const TestSet& test, const EvalOptions& options) {
  TestItems items;
  items.task = "translation";
  BleuOptions bleu;
  bleu.tokenize = options.tokenize;
  uint64_t hash = 0;  // of the references, identifies the test set
  for (size_t i = 0; i < test.target.size(); ++i) {
    const std::vector<std::string_view> reference = {strip_right(test.target[i])};
    const std::string_view line = strip_right(system.lines[i]);
    items.add_sentence(bleu_statistics(line, reference, bleu),
                       chrf_statistics(line, reference, ChrfOptions()));
    hash = XXH3_64bits_withSeed(test.target[i].data(), test.target[i].size(), hash);
  }
  items.test = fmt::format("{:016x} {}", hash, options.tokenize);
  return items;
}

void print_translation(const EvalOptions& options, const System& system, const TestSet& test,
                       const TestItems& items) {
  ScoredTexts texts;
  texts.names = {options.run};
  texts.systems = {stripped(system.lines)};
  texts.references = {stripped(test.target)};
  ReportOptions how;
  how.bleu->tokenize = options.tokenize;
  how.confidence = true;
  const std::vector<MetricReport> reports = score_texts(texts, how);
  const double speed = static_cast<double>(test.source.size()) / system.seconds;
  if (options.json) {
    nlohmann::json json = {{"sentences", test.source.size()},
                           {"sentences_per_second", speed},
                           {"metrics", metrics_json(items)}};
    for (const MetricReport& report : reports) json["scores"].push_back(report_json(report, how));
    fmt::print("{}\n", json.dump(2));
  } else if (options.score_only) {
    fmt::print("{}", report_numbers(reports[0]));
  } else {
    for (const MetricReport& report : reports) fmt::print("{}", report_text(report));
    fmt::print("{}, {:.1f} sentences/s\n",
               counted(static_cast<int64_t>(test.source.size()), "sentence"), speed);
  }
}

}  // namespace

TestItems evaluate_translation(const EvalOptions& options) {
  const TestSet test = read_test(options);
  const System system = translate_test(options, test);
  if (options.agreement) {
    say_agreement(options, system);
    return {};
  }
  TestItems items = items_of(system, test, options);
  print_translation(options, system, test, items);
  return items;
}

TestItems translation_items(const EvalOptions& options) {
  const TestSet test = read_test(options);
  return items_of(translate_test(options, test), test, options);
}

}  // namespace rondo::cli
