// Contact sheets of feature maps.
#include <fmt/format.h>

#include "rondo/image/contact_sheet.h"
#include "rondo/image/resize.h"
#include "rondo/report/inline_image.h"
#include "rondo/study/feature_maps.h"

namespace rondo::study {
namespace {

constexpr int64_t kCell = 64;      // side of a map on the sheet, in pixels
constexpr int64_t kPicture = 112;  // side of an image
constexpr double kTint = 0.55;     // the map's share of a tinted picture
constexpr double kLabels = 210;

// From 0 at the lowest value to 1 at the highest.
Tensor full_range(const Tensor& map) {
  const double low = map.min().item<double>();
  const double high = map.max().item<double>();
  if (high <= low) return at::full_like(map, 0.5);
  return (map - low) / (high - low);
}

// Maps the full range of values to colors; cells are enlarged without smoothing.
Image colored(const Tensor& map) {
  const Tensor values = full_range(map).contiguous();
  Image image(kCell, kCell);
  for (int64_t y = 0; y < kCell; ++y) {
    for (int64_t x = 0; x < kCell; ++x) {
      const int64_t at = y * map.size(0) / kCell * map.size(1) + x * map.size(1) / kCell;
      const auto color = svg::map_rgb(values.data_ptr<double>()[at]);
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

void draw_rollouts(Page& page, const ImageActivations& image, const Image& picture) {
  const Image large = resize(picture, kPicture, kPicture, Filter::bilinear);
  std::vector<Image> overview = {large};
  std::vector<std::string> heads = {"image"};
  for (const Rollout& r : image.rollouts) {
    overview.push_back(tinted(large, r.seen));
    heads.push_back(r.label);
  }
  const std::string title = "Attention rollout of " + image.name;
  if (image.rollouts.empty()) {
    page.figure(sheet(image.name, {""}, {overview}, heads), "The network has no attention.");
    return;
  }
  std::string caption =
      "Attention rollout: which patches reach the output of the last level, dark to light. Every "
      "level passes on half of a token and half of what it attends to";
  if (image.rollouts.size() > 1) {
    caption += "; between stages a token is shared by the patches that its convolution sees";
  }
  page.figure(sheet(title, {"rollout"}, {overview}, heads), caption + ".");
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

Image tinted(const Image& picture, const Tensor& map) {
  const Tensor values =
      at::upsample_bilinear2d(full_range(map).unsqueeze(0).unsqueeze(0),
                              {picture.height, picture.width}, /*align_corners=*/false)
          .contiguous();
  const double* share = values.data_ptr<double>();
  Image image(picture.width, picture.height);
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x, ++share) {
      const uint8_t* from = picture.row(y) + 3 * x;
      const double gray = (from[0] + from[1] + from[2]) / 3.0;
      const auto color = svg::map_rgb(*share);
      for (size_t c = 0; c < 3; ++c) {
        image.row(y)[3 * x + static_cast<int64_t>(c)] =
            static_cast<uint8_t>((1.0 - kTint) * gray + kTint * color[c]);
      }
    }
  }
  return image;
}

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
    draw_rollouts(report.page, image, pictures[i]);
    report.numbers["images"].push_back(image_json(image));
    report.summary += fmt::format("{}: {} ({:.1f} %), {} levels\n", image.name, image.predicted,
                                  100 * image.probability, image.levels.size());
  }
  return report;
}

}  // namespace rondo::study
