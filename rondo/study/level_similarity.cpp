// Compares the levels of two networks batch by batch.
#include "rondo/study/level_similarity.h"

#include <fmt/format.h>

#include <cmath>

#include "rondo/base/error.h"
#include "rondo/base/progress.h"
#include "rondo/base/require.h"
#include "rondo/study/cka.h"

namespace rondo::study {
namespace {

// Keeps the output of every level in one forward pass.
class LevelOutputs : public Observer {
 public:
  bool wants(const std::string& name) override {
    constexpr std::string_view kEnd = ".output";
    return name.size() > kEnd.size() && name.find(".level.") != std::string::npos &&
           name.compare(name.size() - kEnd.size(), kEnd.size(), kEnd) == 0;
  }
  void activation(const std::string& name, const Tensor& value) override {
    outputs_[name.substr(0, name.rfind('.'))] = value;
  }
  // [B, T, D] each.
  LevelRows of(const LevelGroup& group) const {
    LevelRows rows;
    for (const std::string& scope : group.scopes) rows.push_back(outputs_.at(scope));
    return rows;
  }

 private:
  std::map<std::string, Tensor> outputs_;
};

// One of the two networks, with its level outputs for the current batch.
struct Side {
  explicit Side(const Studied& studied)
      : batches(studied.batches),
        groups(level_groups(*studied.network)),
        reader(*studied.network) {}

  bool next() {
    if (!batches->next(batch)) return false;
    outputs = LevelOutputs();
    reader.forward(batch, Scope(&outputs));
    return true;
  }
  // Which tokens of a group's levels are not padding [B, T]; undefined: all.
  Tensor real(const LevelGroup& group) const {
    const auto found = batch.real.find(group.stacks.front());
    return found == batch.real.end() ? Tensor() : found->second;
  }

  Batches* batches;
  std::vector<LevelGroup> groups;
  Reader reader;
  Batch batch;
  LevelOutputs outputs;
};

// Tokens of one item without padding [n, D], for every level.
LevelRows item_rows(const LevelRows& levels, int64_t item, const Tensor& real) {
  LevelRows rows;
  const Tensor chosen = real.defined() ? real[item].nonzero().squeeze(1) : Tensor();
  for (const Tensor& level : levels) {
    const Tensor x = level[item];  // [T, D]
    rows.push_back(chosen.defined() ? x.index_select(0, chosen) : x);
  }
  return rows;
}

// Items as rows [B, T · D], padding zeroed, for every level.
LevelRows flattened(const LevelRows& levels, const Tensor& real) {
  LevelRows rows;
  for (const Tensor& level : levels) {
    const Tensor x = real.defined() ? level * real.unsqueeze(2).to(level.scalar_type()) : level;
    rows.push_back(x.flatten(1));
  }
  return rows;
}

LevelRows all_rows(const LevelRows& levels, const Tensor& real) {
  LevelRows rows;
  for (const Tensor& level : levels) {
    const Tensor x = level.flatten(0, 1);  // [B · T, D]
    rows.push_back(real.defined() ? x.index_select(0, real.flatten().nonzero().squeeze(1)) : x);
  }
  return rows;
}

// Sums of one group of levels.
class GroupSums {
 public:
  void add(CkaEstimator estimator, const LevelRows& a, const LevelRows& b, const Tensor& real) {
    if (is_whole(estimator)) return whole_.add(all_rows(a, real), all_rows(b, real));
    if (estimator == CkaEstimator::items) {
      batched_.add(flattened(a, real), flattened(b, real));
      return;
    }
    require_same_tokens(a, b);
    for (int64_t i = 0; i < a.front().size(0); ++i) {
      batched_.add(item_rows(a, i, real), item_rows(b, i, real));
    }
  }
  Tensor result(CkaEstimator estimator) const {
    if (!is_whole(estimator)) return batched_.result();
    return estimator == CkaEstimator::rows ? whole_.biased() : whole_.unbiased();
  }

 private:
  static bool is_whole(CkaEstimator estimator) {
    return estimator == CkaEstimator::rows || estimator == CkaEstimator::rows_unbiased;
  }
  static void require_same_tokens(const LevelRows& a, const LevelRows& b) {
    for (const LevelRows* rows : {&a, &b}) {
      for (const Tensor& level : *rows) {
        if (level.size(1) == a.front().size(1)) continue;
        throw Error(ExitCode::bad_input,
                    fmt::format("cka: levels have {} and {} tokens, which cannot be paired",
                                a.front().size(1), level.size(1)),
                    "compare whole items instead: --estimator items");
      }
    }
  }
  BatchedCka batched_;
  WholeCka whole_;
};

}  // namespace

CkaEstimator cka_estimator(const std::string& name) {
  return name == "items"           ? CkaEstimator::items
         : name == "rows"          ? CkaEstimator::rows
         : name == "rows-unbiased" ? CkaEstimator::rows_unbiased
                                   : CkaEstimator::tokens;
}

double SimilarityGroup::diagonal_mean() const {
  const int64_t rows = cka.size(0);
  const int64_t columns = cka.size(1);
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t j = rows == 1 ? 0 : (i * (columns - 1) + (rows - 1) / 2) / (rows - 1);
    sum += cka[i][j].item<double>();
  }
  return sum / static_cast<double>(rows);
}

LevelSimilarity level_similarity(const Studied& a, const Studied* b, CkaEstimator estimator) {
  const at::NoGradGuard no_grad;
  Side left(a);
  std::optional<Side> other;
  if (b != nullptr) other.emplace(*b);
  Side& right = other.has_value() ? *other : left;
  require(left.groups.size() == right.groups.size(), "cka: the networks are of different kinds");
  std::vector<GroupSums> sums(left.groups.size());
  LevelSimilarity found;
  Progress progress("cka", 0);
  while (left.next()) {
    if (other.has_value()) {
      require(right.next() && right.batch.rows == left.batch.rows,
              "cka: the two networks were given different items");
    }
    for (size_t g = 0; g < sums.size(); ++g) {
      sums[g].add(estimator, left.outputs.of(left.groups[g]), right.outputs.of(right.groups[g]),
                  left.real(left.groups[g]));
    }
    found.items += left.batch.rows;
    progress.update(found.items);
  }
  progress.finish();
  require(found.items > 0, "cka: expected data, got none");
  for (size_t g = 0; g < sums.size(); ++g) {
    found.groups.push_back({left.groups[g].name, left.groups[g].labels, right.groups[g].labels,
                            sums[g].result(estimator)});
  }
  return found;
}

namespace {

void report_pair(const LevelSimilarity& pair, StudyReport& report) {
  nlohmann::json numbers = {{"a", pair.a}, {"b", pair.b}, {"items", pair.items}};
  for (const SimilarityGroup& group : pair.groups) {
    HeatMap map;
    map.title = fmt::format("CKA between levels of {} and {}, {}", pair.a, pair.b, group.name);
    map.x_label = "level of " + pair.b;
    map.y_label = "level of " + pair.a;
    map.legend = "CKA";
    map.rows = group.a;
    map.columns = group.b;
    map.values = grid_of(group.cka);
    map.low = 0;
    map.high = 1;
    map.upward = true;
    const double mean = group.diagonal_mean();
    report.page.heading(fmt::format("{} and {}: {}", pair.a, pair.b, group.name));
    report.page.figure(heat_map(map), fmt::format("Mean of the diagonal: {:.3f}.", mean));
    numbers["groups"].push_back({{"name", group.name},
                                 {"levels_a", group.a},
                                 {"levels_b", group.b},
                                 {"cka", json_of(group.cka)},
                                 {"diagonal_mean", mean}});
    report.summary += fmt::format("{} and {}, {}: mean of the diagonal {:.4f}\n", pair.a, pair.b,
                                  group.name, mean);
  }
  report.numbers["pairs"].push_back(numbers);
}

}  // namespace

StudyReport similarity_report(const std::vector<LevelSimilarity>& found,
                              const std::string& estimator) {
  StudyReport report("Similarity of levels");
  report.page.paragraph(fmt::format(
      "Linear centered kernel alignment (CKA) between the outputs of the levels of two networks on "
      "the same {} items, estimator '{}'. 1: equal up to rotation and scale; 0: unrelated.",
      found.front().items, estimator));
  report.numbers["estimator"] = estimator;
  for (const LevelSimilarity& pair : found) report_pair(pair, report);
  return report;
}

}  // namespace rondo::study
