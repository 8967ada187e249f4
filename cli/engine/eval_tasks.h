// Tests a trained model, by task: printed (`rondo eval`) or as items (`rondo compare`).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/verbs.h"
#include "rondo/metrics/test_items.h"

namespace rondo::cli {

// Tests the model and prints its scores. Returns the items.
TestItems evaluate_language(const EvalOptions& options);
TestItems evaluate_translation(const EvalOptions& options);
TestItems evaluate_images(const EvalOptions& options);

// The same without printing.
TestItems language_items(const EvalOptions& options);
TestItems translation_items(const EvalOptions& options);
TestItems image_items(const EvalOptions& options);

// The test data: given with --data, or the run's own.
std::string test_source(const EvalOptions& options);

// {"bleu": {"score", "low", "high"}, …}: every metric of the task with its 95 % interval.
nlohmann::json metrics_json(const TestItems& items);
// "  (95 %: 1.2950 to 1.3111)".
std::string interval_text(const std::string& metric, const TestItems& items);

}  // namespace rondo::cli
