// Per-item test results, so that any two models can be compared on the same items: images,
// sentences, or blocks of text. Every score is a function of the summed item counts, as resampling
// requires.
#pragma once

#include <string>
#include <vector>

#include "rondo/metrics/bleu.h"
#include "rondo/metrics/bootstrap.h"
#include "rondo/metrics/chrf.h"

namespace rondo {

// Counts of one item, or the sum over several.
struct ItemCounts {
  std::vector<double> values;
  ItemCounts& operator+=(const ItemCounts& other);
};

struct TestItems {
  std::string task;  // "lm", "translation" or "image"
  std::string test;  // identifies the test data: equal for equal items
  std::vector<ItemCounts> items;

  void add_text(double nats, double tokens, double bytes, double words);  // a block of text
  void add_image(bool first, bool among_five, double nats);
  void add_sentence(const BleuStatistics& bleu, const ChrfStatistics& chrf);

  // Writes a safetensors file atomically.
  void save(const std::string& path) const;
  // Throws Error{bad_input} if it is not a file of test items.
  static TestItems load(const std::string& path);
};

// The metrics of a task, the primary one first: lm bits_per_token, bits_per_byte,
// word_perplexity; translation bleu, chrf; image accuracy, top_five, loss.
std::vector<std::string> metrics_of_task(const std::string& task);

// The score of summed counts.
double item_score(const std::string& metric, const ItemCounts& sum);
double test_score(const std::string& metric, const TestItems& items);

// The 95 % interval of a score by bootstrap over the items; for accuracies, Wilson's interval.
Interval score_interval(const std::string& metric, const TestItems& items);

struct Comparison {
  double a = 0;
  double b = 0;
  Interval difference;          // of a - b, by paired bootstrap over the items
  double p_value = 1;           // of the bootstrap
  std::optional<double> exact;  // accuracies: McNemar's exact test
};

// Throws Error{bad_input} unless both were tested on the same items.
Comparison compare_items(const std::string& metric, const TestItems& a, const TestItems& b);

}  // namespace rondo
