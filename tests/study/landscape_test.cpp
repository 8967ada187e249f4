// The loss around weights: directions scaled per filter, weights moved by hand, points that are
// kept.
#include "rondo/study/landscape.h"

#include "tests/study/study_models.h"

namespace rondo::test {
namespace {

using namespace study;

Batch labeled(const TinyModel& m) {
  Batch batch = tiny_batch(m.config, 4, 3);
  batch.labels = at::tensor({0, 1, 2, 3}, at::kLong);
  return batch;
}

double loss_by_hand(const TinyModel& m, const Batch& batch) {
  const at::NoGradGuard no_grad;
  const Tensor p = m.logits(batch.inputs).to(at::kDouble).log_softmax(1);
  double sum = 0;
  for (int64_t i = 0; i < 4; ++i) sum -= p[i][batch.labels[i].item<int64_t>()].item<double>();
  return sum / 4;
}

TEST(Landscape, DirectionsHaveTheNormsOfFilters) {
  const TinyModel m = tiny("sret/t");
  const NamedTensors direction = filter_normalized_direction(*m.network, 1, "first");
  const NamedTensors other = filter_normalized_direction(*m.network, 1, "second");
  for (const auto& item : m.network->named_parameters()) {
    const Tensor& w = item.value();
    ASSERT_EQ(direction.count(item.key()), w.dim() < 2 ? 0U : 1U) << item.key();
    if (w.dim() < 2) continue;
    const Tensor& d = direction.at(item.key());
    for (int64_t f = 0; f < w.size(0); ++f) {
      EXPECT_NEAR(d[f].norm().item<double>(), w[f].norm().item<double>(), 1e-4) << item.key();
    }
    EXPECT_FALSE(d.equal(other.at(item.key())));
  }
}

TEST(Landscape, MovesWeightsAndPutsThemBack) {
  const TinyModel m = tiny("sret/t");
  const Batch batch = labeled(m);
  const double before = loss_by_hand(m, batch);
  LandscapeOptions options;
  options.points = 5;
  options.radius = 0.5;
  const NamedTensors first = filter_normalized_direction(*m.network, options.seed, "first");
  const NamedTensors second = filter_normalized_direction(*m.network, options.seed, "second");
  double at_point = 0;
  {
    LossPlane plane(*m.network, {batch}, options);
    EXPECT_DOUBLE_EQ(plane.coordinate(0), -0.5);
    EXPECT_NEAR(plane.loss({2, 2}), before, 1e-6);
    at_point = plane.loss({4, 1});  // y = 0.5, x = -0.25
  }
  EXPECT_EQ(loss_by_hand(m, batch), before);
  const at::NoGradGuard no_grad;
  for (auto& item : m.network->named_parameters()) {
    if (first.count(item.key()) == 0) continue;
    item.value().add_(first.at(item.key()), -0.25).add_(second.at(item.key()), 0.5);
  }
  EXPECT_NEAR(loss_by_hand(m, batch), at_point, 1e-5);
}

TEST(Landscape, PointsSurviveInFiles) {
  const testing::TempDir folder;
  const std::string path = folder.file("points");
  {
    PointFile whole(path, "key");
    PointFile part(path + ".1", "key");
    part.add({1, 2}, 0.5);
    part.add({3, 4}, HUGE_VAL);
  }
  testing::spill(path + ".2", "another key\n[9,9,1.0]\n");
  testing::spill(path + ".3", "key\n[5,6,0.25]\n[7,");
  const auto points = PointFile(path, "key").read();
  EXPECT_EQ(points.size(), 3U);
  EXPECT_DOUBLE_EQ(points.at({1, 2}), 0.5);
  EXPECT_TRUE(std::isinf(points.at({3, 4})));
  EXPECT_DOUBLE_EQ(points.at({5, 6}), 0.25);
  EXPECT_TRUE(PointFile(path + ".1", "new key").read().empty());  // restarted
}

TEST(Landscape, NeedsData) {
  const TinyModel m = tiny("sret/t");
  expect_error(ExitCode::bad_input, "expected data",
               [&] { LossPlane(*m.network, {}, LandscapeOptions()); });
}

}  // namespace
}  // namespace rondo::test
