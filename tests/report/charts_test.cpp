// Charts and pages: round axis numbers, every label there, nothing that could be taken for markup.
#include "rondo/report/charts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rondo/report/page.h"

namespace rondo {
namespace {

TEST(Charts, TicksAreRoundAndWithinTheRange) {
  EXPECT_EQ(axis_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  for (const auto& [low, high] :
       std::vector<std::pair<double, double>>{{1.213, 1.288}, {-3, 70}, {1e-6, 9e-6}, {5e7, 6e8}}) {
    const std::vector<double> ticks = axis_ticks(low, high, 6);
    ASSERT_GE(ticks.size(), 3U);
    EXPECT_LE(ticks.size(), 13U);
    const double step = ticks[1] - ticks[0];
    for (const double t : ticks) {
      EXPECT_GE(t, low - 1e-9 * step);
      EXPECT_LE(t, high + 1e-6 * step);
      EXPECT_NEAR(t / step, std::round(t / step), 1e-6);
    }
  }
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Charts, BarsHaveLabelsValuesAndIntervals) {
  BarChart chart;
  chart.unit = "accuracy (%)";
  chart.bars = {{"RingFormer <s>", 81.25, {{80.5, 82.0}}}, {"ViT", 79.5, {}}, {"diverged", {}, {}}};
  const std::string svg = bar_chart(chart);
  EXPECT_EQ(count_of(svg, "<rect"), 2U);
  EXPECT_NE(svg.find("RingFormer &lt;s&gt;"), std::string::npos);
  EXPECT_NE(svg.find(">81.25<"), std::string::npos);
  EXPECT_NE(svg.find(">diverged<"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Charts, LinesLeaveOutWhatIsNotFinite) {
  LineChart chart;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  chart.series = {{"loss", {{1, 5}, {2, nan}, {3, 4}}}, {"empty", {}}};
  const std::string svg = line_chart(chart);
  EXPECT_EQ(count_of(svg, "<polyline"), 2U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(line_chart({}).find("nan"), std::string::npos);
}

TEST(Pages, StandAlone) {
  Page page("A & B");
  page.paragraph("<script>alert(1)</script>");
  page.table({{"row", "score"}, {"ring", "1.5"}});
  const std::string html = page.html();
  EXPECT_NE(html.find("<title>A &amp; B</title>"), std::string::npos);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);  // nothing is fetched
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(html.find("<td>1.5</td>"), std::string::npos);
}

}  // namespace
}  // namespace rondo
