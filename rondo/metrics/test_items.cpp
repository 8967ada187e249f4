// Items as rows of numbers: saving, scoring, comparing.
#include "rondo/metrics/test_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rondo/base/error.h"
#include "rondo/base/require.h"
#include "rondo/base/safetensors.h"
#include "rondo/base/text.h"
#include "rondo/metrics/statistics.h"

namespace rondo {
namespace {

constexpr const char* kFormat = "rondo test items 1";

// Indices into the counts.
enum Text { kNats, kTokens, kBytes, kWords, kTextWidth };
enum ImageColumn { kFirst, kAmongFive, kImageNats, kImages, kImageWidth };
constexpr size_t kBleuWidth = 2 * kBleuOrder + 2;
constexpr size_t kSentenceWidth = kBleuWidth + 3 * kMaxChrfCharacters;

size_t width_of(const std::string& task) {
  if (task == "lm") return kTextWidth;
  return task == "image" ? size_t{kImageWidth} : kSentenceWidth;
}

BleuStatistics bleu_of(const std::vector<double>& v) {
  BleuStatistics s;
  for (size_t n = 0; n < kBleuOrder; ++n) {
    s.correct[n] = static_cast<int64_t>(v[n]);
    s.total[n] = static_cast<int64_t>(v[kBleuOrder + n]);
  }
  s.hypothesis_length = static_cast<int64_t>(v[2 * kBleuOrder]);
  s.reference_length = static_cast<int64_t>(v[2 * kBleuOrder + 1]);
  return s;
}

ChrfStatistics chrf_of(const std::vector<double>& v) {
  ChrfStatistics s;
  for (size_t n = 0; n < kMaxChrfCharacters; ++n) {
    const double* order = v.data() + kBleuWidth + 3 * n;
    s.orders[n] = {static_cast<int64_t>(order[0]), static_cast<int64_t>(order[1]),
                   static_cast<int64_t>(order[2])};
  }
  return s;
}

ItemCounts sum_of_items(const TestItems& items) {
  ItemCounts sum;
  for (const ItemCounts& item : items.items) sum += item;
  if (sum.values.empty()) sum.values.assign(width_of(items.task), 0.0);
  return sum;
}

void require_metric(const std::string& metric, const TestItems& items) {
  const std::vector<std::string> known = metrics_of_task(items.task);
  require(std::find(known.begin(), known.end(), metric) != known.end(),
          "items of task '{}': expected one of the metrics {}, got '{}'", items.task,
          join(known, ", "), metric);
}

std::vector<double> resampled(const std::string& metric, const TestItems& items) {
  require_metric(metric, items);
  return bootstrap_scores(items.items,
                          [&](const ItemCounts& sum) { return item_score(metric, sum); }, {});
}

[[noreturn]] void fail_load(const std::string& path, const std::string& why) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", path, why),
              "create it with 'rondo eval --items FILE'");
}

}  // namespace

ItemCounts& ItemCounts::operator+=(const ItemCounts& other) {
  if (values.empty()) values.assign(other.values.size(), 0.0);
  for (size_t i = 0; i < values.size(); ++i) values[i] += other.values[i];
  return *this;
}

void TestItems::add_text(double nats, double tokens, double bytes, double words) {
  items.push_back({{nats, tokens, bytes, words}});
}

void TestItems::add_image(bool first, bool among_five, double nats) {
  items.push_back({{first ? 1.0 : 0.0, among_five ? 1.0 : 0.0, nats, 1.0}});
}

void TestItems::add_sentence(const BleuStatistics& bleu, const ChrfStatistics& chrf) {
  std::vector<double> v;
  for (const int64_t n : bleu.correct) v.push_back(static_cast<double>(n));
  for (const int64_t n : bleu.total) v.push_back(static_cast<double>(n));
  v.push_back(static_cast<double>(bleu.hypothesis_length));
  v.push_back(static_cast<double>(bleu.reference_length));
  for (size_t n = 0; n < kMaxChrfCharacters; ++n) {
    v.push_back(static_cast<double>(chrf.orders[n].hypothesis));
    v.push_back(static_cast<double>(chrf.orders[n].reference));
    v.push_back(static_cast<double>(chrf.orders[n].matches));
  }
  items.push_back({std::move(v)});
}

void TestItems::save(const std::string& path) const {
  const size_t width = width_of(task);
  std::vector<double> all;
  for (const ItemCounts& item : items) {
    all.insert(all.end(), item.values.begin(), item.values.end());
  }
  const std::vector<int64_t> shape = {static_cast<int64_t>(items.size()),
                                      static_cast<int64_t>(width)};
  write_safetensors(path, {{"items", DType::f64, shape, all.data()}},
                    {{"format", kFormat}, {"task", task}, {"test", test}});
}

TestItems TestItems::load(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const auto text = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (text("format") != kFormat) fail_load(path, "expected a file of test items");
  TestItems result;
  result.task = text("task");
  result.test = text("test");
  const size_t width = width_of(result.task);
  const TensorEntry* entry = file.find("items");
  if (entry == nullptr || entry->dtype != DType::f64 || entry->shape.size() != 2 ||
      entry->shape[1] != static_cast<int64_t>(width)) {
    fail_load(path, fmt::format("expected a tensor 'items' of F64 [items, {}]", width));
  }
  const uint8_t* bytes = file.bytes(*entry);
  for (int64_t i = 0; i < entry->shape[0]; ++i) {
    ItemCounts item{std::vector<double>(width)};
    std::memcpy(item.values.data(), bytes + static_cast<size_t>(i) * width * sizeof(double),
                width * sizeof(double));
    for (const double value : item.values) {
      if (!std::isfinite(value)) fail_load(path, fmt::format("item {} is not finite", i));
    }
    result.items.push_back(std::move(item));
  }
  return result;
}

std::vector<std::string> metrics_of_task(const std::string& task) {
  if (task == "lm") return {"bits_per_token", "bits_per_byte", "word_perplexity"};
  if (task == "image") return {"accuracy", "top_five", "loss"};
  return {"bleu", "chrf"};
}

double item_score(const std::string& metric, const ItemCounts& sum) {
  const std::vector<double>& v = sum.values;
  if (metric == "bits_per_token") return v[kNats] / M_LN2 / v[kTokens];
  if (metric == "bits_per_byte") return v[kNats] / M_LN2 / v[kBytes];
  if (metric == "word_perplexity") return std::exp(v[kNats] / v[kWords]);
  if (metric == "accuracy") return 100 * v[kFirst] / v[kImages];
  if (metric == "top_five") return 100 * v[kAmongFive] / v[kImages];
  if (metric == "loss") return v[kImageNats] / v[kImages];
  if (metric == "chrf") return chrf_score(chrf_of(v), ChrfOptions());
  RONDO_ASSERT(metric == "bleu");
  return bleu_score(bleu_of(v), BleuOptions()).score;
}

double test_score(const std::string& metric, const TestItems& items) {
  require_metric(metric, items);
  return item_score(metric, sum_of_items(items));
}

Interval score_interval(const std::string& metric, const TestItems& items) {
  require_metric(metric, items);
  if (metric != "accuracy" && metric != "top_five") return interval_of(resampled(metric, items));
  const ItemCounts sum = sum_of_items(items);
  const double right = sum.values[metric == "accuracy" ? kFirst : kAmongFive];
  const Proportion share =
      wilson_interval(static_cast<int64_t>(right), static_cast<int64_t>(sum.values[kImages]));
  return {item_score(metric, sum), 100 * share.low, 100 * share.high};
}

Comparison compare_items(const std::string& metric, const TestItems& a, const TestItems& b) {
  if (a.task != b.task || a.test != b.test || a.items.size() != b.items.size() || a.items.empty()) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("the two models were not tested on the same data: {} items of {} ({}), {} "
                    "items of {} ({})",
                    a.items.size(), a.test, a.task, b.items.size(), b.test, b.task),
        "test both on the same data: --data");
  }
  Comparison result;
  result.a = test_score(metric, a);
  result.b = test_score(metric, b);
  const std::vector<double> ours = resampled(metric, a);
  const std::vector<double> theirs = resampled(metric, b);
  std::vector<double> differences;
  for (size_t s = 0; s < ours.size(); ++s) differences.push_back(ours[s] - theirs[s]);
  result.difference = interval_of(differences);
  result.p_value = paired_p_value(ours, theirs, result.a - result.b);
  if (metric != "accuracy" && metric != "top_five") return result;
  const size_t place = metric == "accuracy" ? kFirst : kAmongFive;
  int64_t only_a = 0;
  int64_t only_b = 0;
  for (size_t i = 0; i < a.items.size(); ++i) {
    const bool right_a = a.items[i].values[place] > 0;
    const bool right_b = b.items[i].values[place] > 0;
    only_a += right_a && !right_b ? 1 : 0;
    only_b += right_b && !right_a ? 1 : 0;
  }
  result.exact = mcnemar_p_value(only_a, only_b);
  return result;
}

}  // namespace rondo
