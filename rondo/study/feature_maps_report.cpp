// Contact sheets of feature maps.
#include <fmt/format.h>

#include "rondo/image/contact_sheet.h"
#include "rondo/image/resize.h"
#include "rondo/report/inline_image.h"
#include "rondo/study/feature_maps.h"

namespace rondo::study {
namespace {

constexpr int64_t kCell = 64;  // side of a map on the sheet, in pixels
constexpr double kLabels = 210;

// Maps the full range of values to colors; cells are enlarged without smoothing.
Image colored(const Tensor& map) {
  const double low = map.min().item<double>();
  const double high = map.max().item<double>();
  const Tensor values = map.contiguous();
  Image image(kCell, kCell);
  for (int64_t y = 0; y < kCell; ++y) {
    for (int64_t x = 0; x < kCell; ++x) {
      const int64_t at = y * map.size(0) / kCell * map.size(1) + x * map.size(1) / kCell;
      const double share = high > low ? (values.data_ptr<double>()[at] - low) / (high - low) : 0.5;
      const auto color = svg::map_rgb(share);
      std::copy(color.begin(), color.end(), image.row(y) + 3 * x);
    }
  }
  return image;
}

// Labeled rows of maps, as one figure.
std::string sheet(const std::string& title, const std::vector<std::string>& labels,
                  const std::vector<std::vector<Image>>& rows,
                  const std::vector<std::string>& heads) {
  size_t columns = 0;
  for (const auto& row : rows) columns = std::max(columns, row.size());
  std::vector<Image> cells;
  for (const auto& row : rows) {
    for (size_t c = 0; c < columns; ++c) {
      cells.push_back(c < row.size() ? row[c] : Image(kCell, kCell));
    }
  }
  const Image all = contact_sheet(cells, static_cast<int64_t>(columns));
  const double step = static_cast<double>(all.height) / static_cast<double>(rows.size());
  const double across = static_cast<double>(all.width) / static_cast<double>(columns);
  std::string markup = svg::open(static_cast<double>(all.height) + 28, title,
                                 kLabels + static_cast<double>(all.width) + 10);
  for (size_t c = 0; c < heads.size(); ++c) {
    markup += svg::text({kLabels + (static_cast<double>(c) + 0.5) * across, 16},
                        svg::Anchor::middle, heads[c], "faint");
  }
  for (size_t r = 0; r < labels.size(); ++r) {
    markup += svg::text({kLabels - 8, 28 + (static_cast<double>(r) + 0.5) * step}, svg::Anchor::end,
                        labels[r], "faint");
  }
  return markup + svg_image(encode_png(all), kLabels, 24, all.width, all.height) + "</svg>\n";
}

nlohmann::json image_json(const ImageActivations& image) {
  nlohmann::json json = {
      {"name", image.name}, {"predicted", image.predicted}, {"probability", image.probability}};
  for (const LevelMaps& level : image.levels) {
    json["levels"].push_back(
        {{"level", level.label}, {"mean", json_of(level.mean)}, {"channels", level.channels}});
  }
  for (const Rollout& r : image.rollouts) {
    json["rollout"].push_back({{"stack", r.label}, {"seen", json_of(r.seen)}});
  }
  return json;
}

}  // namespace

StudyReport activations_report(const std::vector<ImageActivations>& found,
                               const std::vector<Image>& pictures) {
  StudyReport report("Feature maps, level by level");
  report.page.paragraph(
      "Feature maps after each level: the mean over channels, then the channels with the highest "
      "mean absolute value. Each map has its own range, dark to light.");
  for (size_t i = 0; i < found.size(); ++i) {
    const ImageActivations& image = found[i];
    report.page.heading(fmt::format("{}: classified as {} ({:.0f} %)", image.name, image.predicted,
                                    100 * image.probability));
    std::vector<std::string> labels;
    std::vector<std::vector<Image>> rows;
    for (const LevelMaps& level : image.levels) {
      labels.push_back(level.label);
      rows.push_back({colored(level.mean)});
      for (int64_t c = 0; c < level.strongest.size(0); ++c) {
        rows.back().push_back(colored(level.strongest[c]));
      }
    }
    std::vector<std::string> heads = {"mean"};
    for (size_t c = 1; !rows.empty() && c < rows.front().size(); ++c) {
      heads.push_back(fmt::format("top {}", c));
    }
    report.page.figure(sheet("Feature maps of " + image.name, labels, rows, heads),
                       "Feature maps of " + image.name + ".");
    std::vector<Image> overview = {resize(pictures[i], kCell, kCell, Filter::bilinear)};
    std::vector<std::string> names = {"image"};
    for (const Rollout& r : image.rollouts) {
      overview.push_back(colored(r.seen));
      names.push_back(r.label);
    }
    report.page.figure(
        sheet("Attention rollout of " + image.name, {"rollout"}, {overview}, names),
        "Attention rollout: which patches attention reaches through all levels of a stack.");
    report.numbers["images"].push_back(image_json(image));
    report.summary += fmt::format("{}: {} ({:.1f} %), {} levels\n", image.name, image.predicted,
                                  100 * image.probability, image.levels.size());
  }
  return report;
}

}  // namespace rondo::study
