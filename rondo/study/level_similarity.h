// Centered kernel alignment between all levels of two networks, or of one with itself, on the same
// data (RingFormer's Figures 2 and 4): encoder and decoder separately, without padding, in memory
// that does not grow with the data.
#pragma once

#include "rondo/study/report.h"
#include "rondo/study/subject.h"

namespace rondo::study {

enum class CkaEstimator {
  tokens,  // HSIC₁ over the tokens of each item, summed over items: the authors' figures
  items,   // HSIC₁ over the items of each batch, each flattened to one row, summed over batches
  rows,    // all tokens of all items as one sample, biased, as usually reported
  rows_unbiased  // the same with HSIC₁
};
// "tokens", "items", "rows", "rows-unbiased"
CkaEstimator cka_estimator(const std::string& name);

struct SimilarityGroup {
  std::string name;            // "encoder", "decoder", "levels"
  std::vector<std::string> a;  // labels of levels
  std::vector<std::string> b;
  Tensor cka;  // [levels of a, levels of b], double
  // Mean over levels at the same relative depth; with equally many levels, of the diagonal.
  double diagonal_mean() const;
};

struct LevelSimilarity {
  std::string a, b;  // names of the networks, for the report
  std::vector<SimilarityGroup> groups;
  int64_t items = 0;
};

// `b` null: `a` with itself. Both must yield the same items in the same batches. Error{bad_input}
// if there are none, or if levels differ in their tokens and the estimator compares tokens.
struct Studied {
  Network* network = nullptr;
  Batches* batches = nullptr;
};
LevelSimilarity level_similarity(const Studied& a, const Studied* b, CkaEstimator estimator);

// For one or several pairs of networks.
StudyReport similarity_report(const std::vector<LevelSimilarity>& found,
                              const std::string& estimator);

}  // namespace rondo::study
