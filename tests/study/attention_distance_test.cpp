// Attention distance against the numbers of the program that RingFormer's authors used.
#include "rondo/study/attention_distance.h"

#include "rondo/base/error.h"
#include "rondo/nn/tensor_file.h"
#include "tests/support/expect.h"

namespace rondo::test {
namespace {

using namespace study;

TEST(AttentionDistance, IsTheAuthors) {
  const NamedTensors all = load_tensors(RONDO_FIXTURES "/studies.safetensors");
  const Tensor got = attention_distance(all.at("attention"), patch_distances(4, 4, 8), /*skip=*/1);
  expect_near(got, all.at("distance.per_image"), 1e-6);  // [images, heads]
  expect_near(got.mean(0), all.at("distance"), 1e-6);
}

TEST(AttentionDistance, OfTextIsInTokens) {
  const Tensor before = at::zeros({1, 1, 4, 4});  // every token looks two back, the first ones at 0
  for (int64_t i = 0; i < 4; ++i) before[0][0][i][std::max<int64_t>(0, i - 2)] = 1.0;
  EXPECT_NEAR(attention_distance(before, token_distances(4)).item<double>(), (0 + 1 + 2 + 2) / 4.0,
              1e-12);
}

TEST(AttentionDistance, OfPatchesIsEuclidean) {
  const Tensor d = patch_distances(2, 3, 10);
  EXPECT_NEAR(d[0][5].item<double>(), 10 * std::sqrt(1.0 + 4.0), 1e-12);
  EXPECT_NEAR(d[1][4].item<double>(), 10, 1e-12);
}

TEST(AttentionDistance, EntropyIsThatOfTheChoice) {
  const Tensor p = at::zeros({1, 2, 1, 4});
  p[0][0].fill_(0.25);
  p[0][1][0][2] = 1.0;
  const Tensor entropy = attention_entropy(p);
  EXPECT_NEAR(entropy[0][0].item<double>(), std::log(4.0), 1e-12);
  EXPECT_NEAR(entropy[0][1].item<double>(), 0.0, 1e-12);
}

TEST(AttentionDistance, ReportsOtherShapes) {
  EXPECT_THROW(attention_distance(at::ones({1, 1, 5, 5}), patch_distances(2, 2, 8)), Error);
  EXPECT_THROW(patch_distances(0, 2, 8), Error);
}

}  // namespace
}  // namespace rondo::test
