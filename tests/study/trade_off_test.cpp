// Costs by groups and loops, and coefficients read from a log.
#include "rondo/study/trade_off.h"

#include "rondo/study/coefficients.h"
#include "tests/study/study_models.h"

namespace rondo::test {
namespace {

using namespace study;

TEST(TradeOff, IsTheoremOne) {
  ModelConfig config = find_model("sret/tl").config();
  std::get<PyramidConfig>(config.network).image = 512;  // 64, 32 and 16 tokens a side
  const auto points = sliced_costs(config, {1, 2, 4}, {1, 2, 4});
  ASSERT_EQ(points.size(), 9U);
  const double global = points.front().attention;
  for (const SlicedCostPoint& p : points) {
    EXPECT_DOUBLE_EQ(p.attention, global * double(p.loops) / double(p.groups));
    EXPECT_GT(p.multiply_adds, p.attention);
  }
}

TEST(TradeOff, LeavesOutGroupsThatDoNotDivide) {
  ModelConfig config = shrink(find_model("sret/t").config());
  for (const SlicedCostPoint& p : sliced_costs(config, {1}, {1, 2, 3, 1000})) {
    EXPECT_LE(p.groups, 2);
  }
  EXPECT_TRUE(sliced_costs(find_model("ringformer/mt-base").config(), {1}, {1}).empty());
}

TEST(Coefficients, AreReadByBlockAndKind) {
  const testing::TempDir folder;
  testing::spill(
      folder.file("metrics.jsonl"),
      R"({"step":1,"loss":2.0,"coefficient/stage.0.residual.1.identity.0":1.0,)"
      R"("coefficient/stage.0.residual.0.identity.0":1.0,"signal/encoder.signal.2.query":0.0}
{"step":2,"coefficient/stage.0.residual.1.identity.0":1.5,"coefficient/stage.0.residual.0.identity.0":0.5,
{"step":3,"coefficient/stage.0.residual.1.identity.0":2.0,"gate/stack.level.2.mixing.cell.attention_gate":0.25}
)");
  const auto groups = read_coefficients(folder.path());
  ASSERT_EQ(groups.size(), 3U);
  const TraceGroup& signal = groups[0];
  EXPECT_EQ(signal.title, "encoder: norm of the query signal");
  EXPECT_EQ(signal.traces[0].label, "level 3");
  EXPECT_EQ(groups[1].title, "gates, mean fraction kept");
  const TraceGroup& identity = groups[2];
  EXPECT_EQ(identity.title, "token mixing, identity coefficient");
  ASSERT_EQ(identity.traces.size(), 2U);
  EXPECT_EQ(identity.traces[0].label, "stage 1, block 1");
  using Points = std::vector<std::pair<double, double>>;
  EXPECT_EQ(identity.traces[1].points,
            (Points{{1, 1.0}, {3, 2.0}}));  // a malformed line is skipped
  testing::spill(folder.file("metrics.jsonl"), R"({"step":1,"loss":2.0})");
  expect_error(ExitCode::bad_input, "no coefficients", [&] { read_coefficients(folder.path()); });
}

}  // namespace
}  // namespace rondo::test
