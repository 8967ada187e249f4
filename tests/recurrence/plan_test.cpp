// Which weights each depth scheme gives to which level, and the static table.
#include <cmath>

#include "rondo/config/depth_plan.h"
#include "rondo/recurrence/universal.h"
#include "tests/support/expect.h"

namespace rondo::test {
namespace {

DepthConfig scheme(const std::string& name, int64_t levels) {
  DepthConfig c;
  c.scheme = name;
  c.levels = levels;
  return c;
}

DepthConfig recursive(std::vector<int64_t> blocks, std::vector<int64_t> loops,
                      const std::string& order) {
  DepthConfig c = scheme("recursive", 1);
  c.recursive.blocks = std::move(blocks);
  c.recursive.loops = std::move(loops);
  c.recursive.order = order;
  return c;
}

PlanShape encoder_shape() { return {}; }

PlanShape decoder_shape() {
  PlanShape shape;
  shape.cross = true;
  return shape;
}

// One field of all levels.
std::vector<int64_t> column(const DepthPlan& plan, int64_t Level::*field) {
  std::vector<int64_t> values;
  for (const Level& level : plan.levels) values.push_back(level.*field);
  return values;
}

using Column = std::vector<int64_t>;
constexpr int64_t kNo = kNone;

TEST(DepthPlan, VanillaLevelsOwnEverything) {
  const DepthPlan plan = make_plan(scheme("vanilla", 3), decoder_shape());
  for (const auto field : {&Level::mixing, &Level::cross, &Level::feed_forward}) {
    EXPECT_EQ(column(plan, field), (Column{0, 1, 2}));
  }
  EXPECT_EQ(column(plan, &Level::mixing_norm), (Column{0, 3, 6}));
  EXPECT_EQ(column(plan, &Level::cross_norm), (Column{1, 4, 7}));
  EXPECT_EQ(column(plan, &Level::feed_forward_norm), (Column{2, 5, 8}));
  EXPECT_EQ(plan.norms(), 9);
  EXPECT_EQ(plan.signals() + plan.residuals() + plan.projections(), 0);
}

TEST(DepthPlan, OneNormPerLevelServesAllItsSublayers) {
  PlanShape shape = decoder_shape();
  shape.one_norm_per_level = true;
  const DepthPlan plan = make_plan(scheme("vanilla", 3), shape);
  for (const auto field : {&Level::mixing_norm, &Level::cross_norm, &Level::feed_forward_norm}) {
    EXPECT_EQ(column(plan, field), (Column{0, 1, 2}));
  }
  EXPECT_EQ(plan.norms(), 3);
}

TEST(DepthPlan, UniversalSharesBlockAndNorms) {
  const DepthPlan plan = make_plan(scheme("universal", 3), encoder_shape());
  EXPECT_EQ(plan.mixings(), 1);
  EXPECT_EQ(plan.feed_forwards(), 1);
  EXPECT_EQ(plan.crosses(), 0);
  EXPECT_EQ(plan.norms(), 2);
  EXPECT_EQ(plan.signals(), 0);
  EXPECT_EQ(column(plan, &Level::mixing_norm), (Column{0, 0, 0}));
  EXPECT_EQ(column(plan, &Level::static_signal), (Column{1, 2, 3}));
  EXPECT_EQ(column(plan, &Level::loop), (Column{0, 1, 2}));
}

TEST(DepthPlan, RingSharesTheBlockButNotNormsAndSignals) {
  const DepthPlan plan = make_plan(scheme("ring", 3), decoder_shape());
  EXPECT_EQ(plan.mixings(), 1);
  EXPECT_EQ(plan.crosses(), 1);
  EXPECT_EQ(plan.feed_forwards(), 1);
  EXPECT_EQ(plan.norms(), 9);
  EXPECT_EQ(column(plan, &Level::signal), (Column{0, 1, 2}));
  EXPECT_EQ(column(plan, &Level::static_signal), (Column{kNo, kNo, kNo}));
}

TEST(DepthPlan, OneWideSharesTheFeedForwardAndItsNorm) {
  const DepthPlan encoder = make_plan(scheme("one-wide", 3), encoder_shape());
  EXPECT_EQ(column(encoder, &Level::mixing), (Column{0, 1, 2}));
  EXPECT_EQ(column(encoder, &Level::feed_forward), (Column{0, 0, 0}));
  EXPECT_EQ(column(encoder, &Level::feed_forward_norm), (Column{0, 0, 0}));
  EXPECT_EQ(column(encoder, &Level::mixing_norm), (Column{1, 2, 3}));
  const DepthPlan decoder = make_plan(scheme("one-wide", 3), decoder_shape());
  EXPECT_EQ(decoder.feed_forwards(), 0);
  EXPECT_EQ(decoder.norms(), 3);
  EXPECT_EQ(column(decoder, &Level::mixing_norm), column(decoder, &Level::cross_norm));
}

TEST(DepthPlan, RecursiveInternalRepeatsEachBlock) {
  DepthConfig c = recursive({2, 3}, {2, 1}, "internal");
  c.recursive.residual = "both";
  c.recursive.projection = 1.0;
  c.recursive.groups = {{8, 2}, {4}};
  const DepthPlan first = make_plan(c, encoder_shape(), 0);
  EXPECT_EQ(column(first, &Level::mixing), (Column{0, 0, 1, 1}));
  EXPECT_EQ(column(first, &Level::mixing_norm), (Column{0, 0, 2, 2}));
  EXPECT_EQ(column(first, &Level::feed_forward_norm), (Column{1, 1, 3, 3}));
  EXPECT_EQ(column(first, &Level::residual), (Column{0, 0, 1, 1}));
  EXPECT_EQ(column(first, &Level::projection), (Column{0, 1, 2, 3}));
  EXPECT_EQ(column(first, &Level::loop), (Column{0, 1, 0, 1}));
  EXPECT_EQ(column(first, &Level::groups), (Column{8, 2, 8, 2}));
  const DepthPlan second = make_plan(c, encoder_shape(), 1);
  EXPECT_EQ(column(second, &Level::mixing), (Column{0, 1, 2}));
  EXPECT_EQ(column(second, &Level::groups), (Column{4, 4, 4}));
  // Stages without an entry use the last one.
  EXPECT_EQ(make_plan(c, encoder_shape(), 5).size(), 3);
}

TEST(DepthPlan, RecursiveExternalRepeatsTheList) {
  DepthConfig c = recursive({3}, {2}, "external");
  c.recursive.projection = 0.5;
  const DepthPlan plan = make_plan(c, encoder_shape());
  EXPECT_EQ(column(plan, &Level::mixing), (Column{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(column(plan, &Level::loop), (Column{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(column(plan, &Level::projection), (Column{kNo, kNo, 0, kNo, kNo, 1}));
  EXPECT_EQ(plan.residuals(), 0);
  EXPECT_EQ(plan.norms(), 6);
}

TEST(DepthPlan, UnknownSchemeIsAnError) {
  expect_error(ExitCode::bad_input, "model.depth.scheme: unknown name 'spiral'",
               [] { make_plan(scheme("spiral", 2), encoder_shape()); });
}

TEST(DepthPlan, CompactRenumbersByFirstUse) {
  DepthPlan plan = make_plan(scheme("vanilla", 3), encoder_shape());
  plan.levels[0].mixing = 7;
  plan.levels[1].mixing = 2;
  plan.levels[2].mixing = 7;
  plan.levels[0].feed_forward = kNone;
  plan.levels[0].feed_forward_norm = kNone;
  plan.levels[1].signal = 5;
  compact(plan);
  EXPECT_EQ(column(plan, &Level::mixing), (Column{0, 1, 0}));
  EXPECT_EQ(column(plan, &Level::feed_forward), (Column{kNo, 0, 1}));
  EXPECT_EQ(column(plan, &Level::mixing_norm), (Column{0, 1, 3}));
  EXPECT_EQ(column(plan, &Level::feed_forward_norm), (Column{kNo, 2, 4}));
  EXPECT_EQ(column(plan, &Level::signal), (Column{kNo, 0, kNo}));
}

TEST(DepthPlan, FirstLoopsPlaysEveryBlockOnce) {
  for (const char* order : {"internal", "external"}) {
    const DepthPlan deep = make_plan(recursive({3}, {4}, order), encoder_shape());
    ASSERT_EQ(deep.size(), 12);
    EXPECT_EQ(column(first_loops(deep), &Level::mixing), (Column{0, 1, 2})) << order;
  }
}

TEST(DepthPlan, DropPathGrowsWithTheBlockAndNotWithItsLoops) {
  DepthPlan plan = make_plan(recursive({3}, {2}, "internal"), encoder_shape());
  set_drop_path(plan, 0.2, 4, 20);
  const double want[] = {0.2 * 4 / 20, 0.2 * 4 / 20, 0.2 * 5 / 20,
                         0.2 * 5 / 20, 0.2 * 6 / 20, 0.2 * 6 / 20};
  for (size_t i = 0; i < 6; ++i) EXPECT_DOUBLE_EQ(plan.levels[i].drop_path, want[i]);
}

TEST(StaticSignal, EqualsAScalarLoop) {
  const int64_t width = 7;
  const Tensor positions = at::tensor({0, 1, 9, 4, 5, 6}, at::kLong).view({2, 3});
  const Tensor table = static_signal(positions, 3, width, at::kDouble);
  ASSERT_EQ(table.sizes().vec(), (Shape{2, 3, width}));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 3; ++t) {
      const double p = static_cast<double>(positions[b][t].item<int64_t>() + 1);
      for (int64_t k = 1; k <= width; ++k) {
        const double rate =
            std::pow(10000.0, 2.0 * static_cast<double>(k) / static_cast<double>(width));
        const double want = k % 2 == 0 ? std::sin(p / rate) + std::sin(3 / rate)
                                       : std::cos(p / rate) + std::cos(3 / rate);
        EXPECT_NEAR(table[b][t][k - 1].item<double>(), want, 1e-13);
      }
    }
  }
}

}  // namespace
}  // namespace rondo::test
