// Position codes against scalar loops and the authors' tables.
#include "rondo/nn/position.h"

#include <cmath>

#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/reference.h"

namespace rondo::test {
namespace {

const at::TensorOptions kInDouble = at::TensorOptions(at::kDouble);

TEST(SinusoidalPositions, EqualAScalarLoopForAnyStartAndWidth) {
  for (const int64_t width : {8, 7, 1}) {
    const Tensor table = nn::sinusoidal_positions(3, 5, width, kInDouble);
    ASSERT_EQ(table.sizes().vec(), (Shape{5, width}));
    for (int64_t t = 0; t < 5; ++t) {
      for (int64_t i = 0; i < width; ++i) {
        const double pair = static_cast<double>(i / 2 * 2) / static_cast<double>(width);
        const double angle = static_cast<double>(3 + t) / std::pow(10000.0, pair);
        const double want = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
        EXPECT_NEAR(table[t][i].item<double>(), want, 1e-14);
      }
    }
  }
}

TEST(SinusoidalPositions, EqualTheAuthorsTables) {
  const Reference vision("ringformer_vision");
  const Reference translation("ringformer_translation");
  const auto compare = [](const Tensor& theirs) {
    const Tensor ours = nn::sinusoidal_positions(0, theirs.size(1), theirs.size(2), at::kFloat);
    expect_near(ours, theirs[0], 1e-6);
  };
  compare(vision["const/transformer.embeddings.position_embeddings.pos_embed"]);
  compare(translation["const/encoder.pos_layer.pe"]);
  compare(translation["const/decoder.pos_layer.pe"]);
}

TEST(SplitSinusoidalPositions, EqualAScalarLoop) {
  const Tensor positions = at::tensor({2, 3, 900, 1, 1, 7}, at::kLong).view({2, 3});
  const int64_t width = 10;
  const Tensor table = nn::split_sinusoidal_positions(positions, width, kInDouble);
  ASSERT_EQ(table.sizes().vec(), (Shape{2, 3, width}));
  const int64_t half = width / 2;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 3; ++t) {
      const double p = static_cast<double>(positions[b][t].item<int64_t>());
      for (int64_t j = 0; j < half; ++j) {
        const double rate =
            std::pow(10000.0, -static_cast<double>(j) / static_cast<double>(half - 1));
        EXPECT_NEAR(table[b][t][j].item<double>(), std::sin(p * rate), 1e-12);
        EXPECT_NEAR(table[b][t][half + j].item<double>(), std::cos(p * rate), 1e-12);
      }
    }
  }
}

TEST(RelativeBuckets, EqualTheAuthorsForAllDistances) {
  const Reference reference("t5_buckets");
  const Tensor distance = reference["distance"];
  ASSERT_EQ(distance.numel(), 1100);
  expect_identical(nn::relative_buckets(distance), reference["bucket"]);
}

TEST(RelativeBuckets, DistancesIntoTheFutureCountAsNone) {
  expect_identical(nn::relative_buckets(at::tensor({-5, -1, 0}, at::kLong)),
                   at::zeros({3}, at::kLong));
}

TEST(RelativeBias, IsTheTablesEntryOfTheDistance) {
  nn::RelativeBias bias(2);
  make_generic(bias, 1);
  const Tensor table = bias.named_parameters()["table"];
  const int64_t queries = 5, keys = 40, reach = 35;
  const Tensor tile = bias.tile(queries, keys, reach);
  ASSERT_EQ(tile.sizes().vec(), (Shape{2, queries, keys}));
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const Tensor distance = at::full({1}, reach + i - j, at::kLong);
      const int64_t bucket = nn::relative_buckets(distance).item<int64_t>();
      expect_identical(tile.select(2, j).select(1, i), table.select(1, bucket));
    }
  }
}

TEST(RelativeBias, Gradients) {
  nn::RelativeBias bias(2);
  make_generic(bias, 2);
  gradcheck([&] { return bias.tile(3, 6, 3).sin(); }, with_parameters(bias));
}

}  // namespace
}  // namespace rondo::test
