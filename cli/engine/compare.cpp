// rondo compare: two models on the same test items, and whether they differ significantly.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/eval_tasks.h"
#include "cli/engine/session.h"
#include "rondo/config/trained_files.h"

namespace rondo::cli {
namespace {

TestItems items_of(const std::string& run, EvalOptions options) {
  options.run = run;
  const std::string task = find_trained(run).model.task();
  if (task == "image") return image_items(options);
  return task == "translation" ? translation_items(options) : language_items(options);
}

nlohmann::json comparison_json(const Comparison& c) {
  nlohmann::json json = {{"a", c.a},
                         {"b", c.b},
                         {"difference", c.a - c.b},
                         {"low", c.difference.low},
                         {"high", c.difference.high},
                         {"p_value", c.p_value}};
  if (c.exact.has_value()) json["mcnemar_p_value"] = *c.exact;
  return json;
}

void print_comparison(const std::string& metric, const Comparison& c) {
  const int digits = metric == "bits_per_token" || metric == "bits_per_byte" ? 4 : 2;
  const auto number = [&](double value) { return fmt::format("{:.{}f}", value, digits); };
  fmt::print("{:<16} {:>10} {:>10} {:>+10.{}f}  [{}, {}]  p = {:.2g}{}\n", metric, number(c.a),
             number(c.b), c.a - c.b, digits, number(c.difference.low), number(c.difference.high),
             c.p_value,
             c.exact.has_value() ? fmt::format(" (McNemar {:.2g})", *c.exact) : std::string());
}

}  // namespace

void run_compare(const CompareOptions& options) {
  start_engine(options.eval.compute);
  const TestItems a = items_of(options.eval.run, options.eval);
  EvalOptions same = options.eval;
  if (same.data.empty()) same.data = test_source(options.eval);
  const TestItems b = items_of(options.other, same);
  nlohmann::json json = {{"a", options.eval.run},
                         {"b", options.other},
                         {"items", a.items.size()},
                         {"metrics", nlohmann::json::object()}};
  std::vector<std::pair<std::string, Comparison>> all;
  for (const std::string& metric : metrics_of_task(a.task)) {
    all.emplace_back(metric, compare_items(metric, a, b));
    json["metrics"][metric] = comparison_json(all.back().second);
  }
  if (options.eval.json) {
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{:<16} {:>10} {:>10} {:>10}  95 % interval by paired bootstrap over {} items\n", "",
             "a", "b", "a - b", a.items.size());
  for (const auto& [metric, comparison] : all) print_comparison(metric, comparison);
}

}  // namespace rondo::cli
