// CKA between levels of networks, against the estimators on activations collected by hand.
#include "rondo/study/level_similarity.h"

#include <cmath>

#include "rondo/study/cka.h"
#include "tests/study/study_models.h"

namespace rondo::test {
namespace {

using namespace study;

// The activations of the levels of a group for a batch, without padding, item by item.
std::vector<LevelRows> rows_by_hand(const TinyModel& m, const Batch& batch,
                                    const std::string& stack) {
  const at::NoGradGuard no_grad;
  Everything seen;
  State state;
  m.network->forward(batch.inputs, state, Scope(&seen));
  std::vector<LevelRows> items(static_cast<size_t>(batch.rows));
  const int64_t levels = m.network->stacks().at(stack)->plan().size();
  for (int64_t i = 0; i < levels; ++i) {
    const Tensor x = seen.one(stack + ".level." + std::to_string(i) + ".output");
    for (int64_t b = 0; b < batch.rows; ++b) {
      std::vector<Tensor> kept;
      for (int64_t t = 0; t < x.size(1); ++t) {
        const auto mask = batch.real.find(stack);
        if (mask != batch.real.end() && !mask->second[b][t].item<bool>()) continue;
        kept.push_back(x[b][t]);
      }
      items[static_cast<size_t>(b)].push_back(at::stack(kept));
    }
  }
  return items;
}

TEST(LevelSimilarity, OfSentencesIsSummedOverTheirTokens) {
  const TinyModel a = tiny("ringformer/mt-base");
  const TinyModel b = tiny("ringformer/mt-base-vanilla", 2);
  const std::vector<Batch> data = {tiny_batch(a.config, 3, 5), tiny_batch(a.config, 4, 6)};
  GivenBatches for_a(data);
  GivenBatches for_b(data);
  const Studied left = {a.network.get(), &for_a};
  const Studied right = {b.network.get(), &for_b};
  const LevelSimilarity found = level_similarity(left, &right, CkaEstimator::tokens);
  EXPECT_EQ(found.items, 7);
  ASSERT_EQ(found.groups.size(), 2U);
  for (const SimilarityGroup& group : found.groups) {
    BatchedCka by_hand;
    for (const Batch& batch : data) {
      const auto x = rows_by_hand(a, batch, group.name);
      const auto y = rows_by_hand(b, batch, group.name);
      for (size_t i = 0; i < x.size(); ++i) by_hand.add(x[i], y[i]);
    }
    expect_near(group.cka, by_hand.result(), 1e-6, group.name);
  }
}

// HSIC₁ as it is defined, of all tokens of all sentences.
double unbiased_hsic(const Tensor& x, const Tensor& y) {
  const Tensor k = at::matmul(x, x.t());
  const Tensor l = at::matmul(y, y.t());
  const int64_t n = x.size(0);
  double trace = 0, k_sum = 0, l_sum = 0, both = 0;
  for (int64_t i = 0; i < n; ++i) {
    double k_row = 0, l_row = 0;
    for (int64_t j = 0; j < n; ++j) {
      if (i == j) continue;
      trace += k[i][j].item<double>() * l[j][i].item<double>();
      k_row += k[i][j].item<double>();
      l_row += l[i][j].item<double>();
    }
    k_sum += k_row;
    l_sum += l_row;
    both += k_row * l_row;
  }
  const auto m = double(n);
  return (trace + k_sum * l_sum / ((m - 1) * (m - 2)) - 2 / (m - 2) * both) / (m * (m - 3));
}

TEST(LevelSimilarity, OfAllRowsUnbiasedIsTheDefinition) {
  const TinyModel a = tiny("ringformer/mt-base");
  const TinyModel b = tiny("ringformer/mt-base-vanilla", 2);
  const std::vector<Batch> data = {tiny_batch(a.config, 2, 5), tiny_batch(a.config, 3, 6)};
  GivenBatches for_a(data);
  GivenBatches for_b(data);
  const Studied left = {a.network.get(), &for_a};
  const Studied right = {b.network.get(), &for_b};
  const LevelSimilarity found = level_similarity(left, &right, cka_estimator("rows-unbiased"));
  for (const SimilarityGroup& group : found.groups) {
    std::vector<Tensor> x, y;  // of the second and the first level
    for (const Batch& batch : data) {
      for (const LevelRows& item : rows_by_hand(a, batch, group.name)) x.push_back(item[1]);
      for (const LevelRows& item : rows_by_hand(b, batch, group.name)) y.push_back(item[0]);
    }
    const Tensor all_x = at::cat(x).to(at::kDouble);
    const Tensor all_y = at::cat(y).to(at::kDouble);
    const double want = unbiased_hsic(all_x, all_y) /
                        std::sqrt(unbiased_hsic(all_x, all_x) * unbiased_hsic(all_y, all_y));
    EXPECT_NEAR(group.cka[1][0].item<double>(), want, 1e-6) << group.name;
  }
}

TEST(LevelSimilarity, PaddingChangesNothing) {
  const TinyModel m = tiny("ringformer/mt-base");
  Batch narrow = tiny_batch(m.config, 5, 5, 9);
  Batch wide = narrow;
  for (const char* name : {"source", "target"}) {
    const Tensor more =
        at::full({5, 4}, std::get<EncoderDecoderConfig>(m.config.network).padding, at::kLong);
    wide.inputs[name] = at::cat({narrow.inputs.at(name), more}, 1);
  }
  for (auto& [name, real] : wide.real) real = at::cat({real, at::zeros({5, 4}, at::kBool)}, 1);
  for (const auto estimator : {CkaEstimator::tokens, CkaEstimator::items, CkaEstimator::rows,
                               CkaEstimator::rows_unbiased}) {
    GivenBatches one({narrow});
    GivenBatches other({wide});
    const Studied a = {m.network.get(), &one};
    const Studied b = {m.network.get(), &other};
    const LevelSimilarity x = level_similarity(a, nullptr, estimator);
    const LevelSimilarity y = level_similarity(b, nullptr, estimator);
    for (size_t g = 0; g < x.groups.size(); ++g) {
      expect_near(x.groups[g].cka, y.groups[g].cka, 1e-5);
      EXPECT_NEAR(x.groups[g].diagonal_mean(), 1.0, 1e-9);  // of a network with itself
    }
  }
}

TEST(LevelSimilarity, OfStagesComparesWholeItems) {
  const TinyModel m = tiny("sret/t");
  const Batch batch = tiny_batch(m.config, 6, 3);
  GivenBatches data({batch});
  const Studied a = {m.network.get(), &data};
  const LevelSimilarity found = level_similarity(a, nullptr, CkaEstimator::items);
  ASSERT_EQ(found.groups.size(), 1U);
  EXPECT_EQ(found.groups[0].a.front(), "1.1");
  EXPECT_EQ(found.groups[0].a.back().substr(0, 2), "3.");
  GivenBatches again({batch});
  const Studied tokens = {m.network.get(), &again};
  expect_error(ExitCode::bad_input, "--estimator items",
               [&] { level_similarity(tokens, nullptr, CkaEstimator::tokens); });
  GivenBatches none({});
  const Studied empty = {m.network.get(), &none};
  expect_error(ExitCode::bad_input, "expected data",
               [&] { level_similarity(empty, nullptr, CkaEstimator::items); });
}

TEST(LevelSimilarity, DiagonalOfUnequalDepthsIsByRelativeDepth) {
  SimilarityGroup group;
  group.cka = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}, at::kDouble).view({2, 4});
  EXPECT_DOUBLE_EQ(group.diagonal_mean(), (1 + 8) / 2.0);
}

}  // namespace
}  // namespace rondo::test
