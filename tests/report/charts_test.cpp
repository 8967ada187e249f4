// Charts and pages: round axis numbers, every label present, nothing that could be parsed as
// markup.
#include "rondo/report/charts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rondo/report/inline_image.h"
#include "rondo/report/label_places.h"
#include "rondo/report/maps.h"
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

TEST(Charts, LinesOfOnePointAreVisible) {
  LineChart chart;
  chart.series = {{"loss", {{1, 5}}}};
  EXPECT_EQ(count_of(line_chart(chart), "<circle"), 1U);
  chart.series[0].points.emplace_back(2, 6);
  EXPECT_EQ(count_of(line_chart(chart), "<circle"), 0U);
  chart.series = {{"loss", {{1, 5}}, {{4, 6}}}};
  EXPECT_EQ(count_of(line_chart(chart), "class=\"interval\""), 3U);
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

TEST(Charts, LogTicksArePowersOfTen) {
  EXPECT_EQ(log_ticks(1, 1000), (std::vector<double>{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}));
  EXPECT_EQ(log_ticks(1, 1e5), (std::vector<double>{1, 10, 100, 1000, 1e4, 1e5}));
  EXPECT_GE(log_ticks(3, 7).size(), 3U);  // less than a decade: as on a plain axis
  EXPECT_EQ(tick_text(0.25), "0.25");
  EXPECT_EQ(tick_text(20000), "20k");
  EXPECT_EQ(tick_text(-1.5e6), "-1.5M");
  EXPECT_EQ(tick_text(1e-15), "0");
}

TEST(Charts, ScalesMapRangesOntoPixels) {
  const svg::Scale linear({0, 10}, false, 100, 200);
  EXPECT_DOUBLE_EQ(linear(5), 150);
  const svg::Scale log({1, 100}, true, 0, 100);
  EXPECT_DOUBLE_EQ(log(10), 50);
  EXPECT_FALSE(log.shows(0));
  EXPECT_FALSE(log.shows(-1));
  EXPECT_TRUE(linear.shows(-1));
}

TEST(Charts, LinesExactly) {
  LineChart chart;
  chart.x = {"step", false, 0.0, 2.0};
  chart.y = {"loss", false, 0.0, 1.0};
  chart.series = {{"a & b", {{0, 0}, {2, 1}}, {{0, 0.5}, {0.5, 1}}}};
  const std::string svg = line_chart(chart);
  EXPECT_EQ(svg.rfind("<svg viewBox=\"0 0 760 348\" width=\"760\" height=\"348\" role=\"img\">\n"
                      "<title>loss by step</title>\n",
                      0),
            0U);
  // x from 74 to 570, y from 300 up to 10.
  EXPECT_NE(svg.find("<polygon points=\"74.0,155.0 570.0,10.0 570.0,155.0 74.0,300.0 \" "
                     "fill=\"var(--s0)\" fill-opacity=\"0.18\"/>\n"
                     "<polyline points=\"74.0,300.0 570.0,10.0 \" fill=\"none\" "
                     "stroke=\"var(--s0)\" stroke-width=\"1.8\"/>\n"),
            std::string::npos);
  EXPECT_NE(svg.find("<line x1=\"74.0\" y1=\"184.0\" x2=\"570.0\" y2=\"184.0\" class=\"axis\"/>\n"),
            std::string::npos);
  EXPECT_NE(svg.find(">a &amp; b</text>"), std::string::npos);
}

TEST(Charts, SeriesDifferByMoreThanColor) {
  EXPECT_EQ(svg::series_color(0), svg::series_color(8));
  EXPECT_NE(svg::series_dashes(0), svg::series_dashes(1));
  EXPECT_NE(svg::mark({0, 0}, 0), svg::mark({0, 0}, 1));
}

TEST(Charts, ManySeriesMakeRoomForTheirNames) {
  LineChart chart;
  for (int i = 0; i < 30; ++i) chart.series.push_back({std::to_string(i), {{0, i}, {1, i}}});
  EXPECT_NE(line_chart(chart).find("viewBox=\"0 0 760 598\""), std::string::npos);
}

TEST(Charts, BarsOfBothSignsStartAtZero) {
  BarChart chart;
  chart.bars = {{"up", 1.0, {}}, {"down", -1.0, {}}};
  const std::string svg = bar_chart(chart);
  // The range is from -1.3 to 1.3, zero in the middle of 220 to 690.
  EXPECT_NE(svg.find("<rect x=\"455.0\" y=\"14.0\" width=\"180.8\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("<rect x=\"274.2\" y=\"40.0\" width=\"180.8\""), std::string::npos) << svg;
}

TEST(Charts, LabelsOfPointsDoNotCollide) {
  std::vector<LabeledPoint> points;
  for (int i = 0; i < 12; ++i) {
    points.push_back({{300.0 + i % 3, 150.0 + i / 3}, "a run of some name " + std::to_string(i)});
  }
  const auto placed = place_labels(points, {0, 0, 700, 340});
  EXPECT_GE(placed.size(), 10U);
  for (size_t i = 0; i < placed.size(); ++i) {
    const LabelBox box = box_of(placed[i]);
    EXPECT_GE(box.left, 0);
    EXPECT_LE(box.right, 700);
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(box.overlaps(box_of(placed[j]))) << i << " " << j;
    for (const LabeledPoint& p : points) {
      const LabelBox mark = {p.point.x - 4, p.point.y - 4, p.point.x + 4, p.point.y + 4};
      EXPECT_FALSE(box.overlaps(mark));
    }
  }
}

TEST(Charts, ScatterHasEveryPointAndLabel) {
  ScatterChart chart;
  chart.x = {"parameters", true};
  chart.y = {"accuracy", false};
  chart.points = {
      {"ring", 1e6, 80, 0, {{79, 81}}}, {"vit", 1e7, 82, 1, {}}, {"bad", -1, 82, 1, {}}};
  const std::string svg = scatter_chart(chart);
  EXPECT_EQ(count_of(svg, "<circle"), 1U);
  EXPECT_EQ(count_of(svg, "<path"), 1U);
  EXPECT_NE(svg.find(">ring</text>"), std::string::npos);
  EXPECT_EQ(svg.find("bad"), std::string::npos);  // it has no position on a log axis
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Maps, HeatMapExactly) {
  HeatMap map;
  map.title = "t";
  map.rows = {"r1", "r2"};
  map.columns = {"c1", "c2"};
  map.values = {{0, 1}, {std::numeric_limits<double>::quiet_NaN(), 0.5}};
  map.legend = "share";
  const std::string svg = heat_map(map);
  EXPECT_NE(svg.find("<rect x=\"30.0\" y=\"28.0\" width=\"43.5\" height=\"29.5\" "
                     "fill=\"#440154\"/>\n<text x=\"52.0\" y=\"47.0\" text-anchor=\"middle\" "
                     "class=\"light\">0.00</text>\n"),
            std::string::npos)
      << svg;
  EXPECT_NE(svg.find("fill=\"#fde725\"/>\n<text x=\"96.0\" y=\"47.0\" "
                     "text-anchor=\"middle\" class=\"dark\">1.00</text>\n"),
            std::string::npos)
      << svg;
  EXPECT_EQ(count_of(svg, "height=\"29.5\""), 3U);  // the cell without a value is blank
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Maps, ContoursCutCells) {
  const auto line = contour_pieces({{0, 0}, {1, 1}}, 0.5);
  ASSERT_EQ(line.size(), 1U);
  EXPECT_DOUBLE_EQ(line[0].from.y, 0.5);
  EXPECT_DOUBLE_EQ(line[0].to.y, 0.5);
  EXPECT_NEAR(std::abs(line[0].from.x - line[0].to.x), 1.0, 1e-12);
  EXPECT_EQ(contour_pieces({{0, 1}, {1, 0}}, 0.4).size(), 2U);  // a saddle
  EXPECT_TRUE(contour_pieces({{0, 0}, {0, 0}}, 0.5).empty());
}

TEST(Maps, ContourLabelsDoNotCollide) {
  SurfaceMap map;
  map.x = {-1, 0, 1};
  map.y = map.x;
  map.values = {{2, 1, 2}, {1, 0, 1}, {2, 1, 2}};
  const std::string svg = contour_map(map);
  std::vector<std::pair<double, double>> places;
  const std::string start = "<text x=\"";
  const std::string style = "paint-order:stroke";
  for (size_t at = svg.find(style); at != std::string::npos; at = svg.find(style, at + 1)) {
    const size_t x = svg.rfind(start, at) + start.size();
    const size_t y = svg.find("y=\"", x) + 3;
    places.emplace_back(std::stod(svg.substr(x)), std::stod(svg.substr(y)));
  }
  ASSERT_GE(places.size(), 2U);
  EXPECT_LE(places.size(), count_of(svg, "class=\"contour\""));
  for (size_t i = 0; i < places.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_TRUE(std::abs(places[i].first - places[j].first) > 20 ||
                  std::abs(places[i].second - places[j].second) > 16);
    }
  }
}

TEST(Maps, SurfacesHoldEveryFacet) {
  SurfaceMap map;
  map.x = {-1, 0, 1};
  map.y = {-1, 0, 1};
  map.values = {{2, 1, 2}, {1, 0, 1}, {2, 1, std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(count_of(surface_plot(map), "<polygon"), 3U);  // one has a corner that is not finite
  EXPECT_EQ(count_of(contour_map(map), "height=\"133.6\""), 8U);
  EXPECT_EQ(contour_map(map).find("inf"), std::string::npos);
}

TEST(Maps, ColorsRunFromDarkToLight) {
  EXPECT_EQ(svg::map_color(0), "#440154");
  EXPECT_EQ(svg::map_color(1), "#fde725");
  EXPECT_EQ(svg::map_color(0.5, true), "#f7f7f7");
  EXPECT_EQ(svg::map_color(7), "#fde725");
  EXPECT_TRUE(svg::is_light(1));
  EXPECT_FALSE(svg::is_light(0));
}

TEST(Pages, PixelsAreInline) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Pages, FiguresStandAloneAsWell) {
  Page page("p");
  page.figure(line_chart({}));
  const std::string alone = standalone_svg(page.first_figure());
  EXPECT_EQ(alone.rfind("<svg xmlns=", 0), 0U);
  EXPECT_NE(alone.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_EQ(count_of(alone, "<svg "), 1U);
  EXPECT_EQ(count_of(alone, "</svg>"), 1U);
  EXPECT_EQ(standalone_svg("<p>no drawing</p>"), "");
}

TEST(Pages, LongLabelsAreCutBetweenCharacters) {
  EXPECT_EQ(svg::shortened("short", 100), "short");
  EXPECT_EQ(svg::shortened("abcdefghijkl", 52), "abcdef…");
  EXPECT_EQ(svg::shortened("üüüüüüüüüü", 40), "üüüü…");
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
