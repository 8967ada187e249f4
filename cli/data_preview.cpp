// rondo data preview: a contact sheet of an experiment's images as its network sees them.
#include <fmt/format.h>

#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/config/paper_table.h"
#include "rondo/config/train_config.h"
#include "rondo/image/contact_sheet.h"
#include "rondo/image/pipeline.h"

namespace rondo::cli {
namespace {

struct SideOfImages {
  int64_t operator()(const VisionConfig& c) const { return c.image; }
  int64_t operator()(const PyramidConfig& c) const { return c.image; }
  int64_t operator()(const EncoderDecoderConfig& /*c*/) const { return 0; }
  int64_t operator()(const LanguageModelConfig& /*c*/) const { return 0; }
};

RunConfig image_experiment(const DataPreviewOptions& options) {
  RunConfig config =
      find_experiment({options.config, options.mini, options.folders, options.set}).config;
  if (std::string(config.model.task()) != "image") {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected an image experiment, got a model of kind {}",
                            options.config, config.model.kind()));
  }
  return config;
}

std::string split_source(const DataPreviewOptions& options, const ImageDataConfig& data) {
  std::string source = options.split == "train"   ? data.train
                       : options.split == "valid" ? data.valid
                                                  : data.test;
  if (source.empty()) {
    throw Error(
        ExitCode::bad_input, fmt::format("data.{}: missing", options.split),
        fmt::format("set the folder of class folders: --set data.{}=FOLDER", options.split));
  }
  return source;
}

// Checked before any image is read: image viewers must be able to open the sheet.
void check_sheet_size(const DataPreviewOptions& options, int64_t side) {
  const DecodeLimits limits;
  const int64_t rows = options.rows * (options.original ? 2 : 1);
  const int64_t width = options.columns * side;
  const int64_t height = rows * side;
  if (width <= limits.side && height <= limits.side && width * height <= limits.pixels) return;
  throw Error(ExitCode::usage,
              fmt::format("the sheet would have {} x {} pixels: expected at most {} per side and "
                          "{} in total",
                          width, height, limits.side, si_count(double(limits.pixels))),
              "choose fewer --rows and --columns");
}

class PreviewSheet {
 public:
  PreviewSheet(const ImageSet& images, int64_t columns, int64_t side)
      : images_(images), columns_(columns), side_(side) {}

  void add_originals(const ImageBatch& batch) {
    for (int64_t r = 0; r < batch.rows; ++r) {
      const Image image = images_.load(batch.index[static_cast<size_t>(r)]);
      pictures_.push_back(fit_middle(image, side_, 1.0, Filter::bicubic));
    }
    fill_row(batch.rows);
  }

  void add_seen(const ImageBatch& batch, const Augmenter& augmenter) {
    for (int64_t r = 0; r < batch.rows; ++r) {
      pictures_.push_back(augmenter.picture(batch.pixels.data() + r * 3 * side_ * side_));
    }
    fill_row(batch.rows);
    seen_ += batch.rows;
    std::vector<std::string> titles;
    for (const int64_t label : batch.labels) {
      titles.push_back(images_.titles()[static_cast<size_t>(label)]);
    }
    std::string line = fmt::format("row {}: {}", ++rows_, join(titles, " | "));
    if (batch.mix.mixed) {
      line += fmt::format(" ({}: {:.0f} % of each, the rest of the row in reverse)",
                          batch.mix.cut ? "cutmix" : "mixup", 100 * batch.mix.lambda);
    }
    lines_ += line + "\n";
  }

  const std::vector<Image>& pictures() const { return pictures_; }
  const std::string& lines() const { return lines_; }
  int64_t seen() const { return seen_; }

 private:
  // Pads a row that has broken or too few images.
  void fill_row(int64_t have) {
    for (int64_t i = have; i < columns_; ++i) pictures_.emplace_back(side_, side_);
  }

  const ImageSet& images_;
  int64_t columns_;
  int64_t side_;
  std::vector<Image> pictures_;
  std::string lines_;
  int64_t rows_ = 0;
  int64_t seen_ = 0;
};

}  // namespace

void run_data_preview(const DataPreviewOptions& options) {
  const RunConfig config = image_experiment(options);
  const std::string source = split_source(options, config.images);
  LoaderOptions how;
  how.side = std::visit(SideOfImages{}, config.model.network);
  how.rows = options.columns;
  how.seed = static_cast<uint64_t>(config.train.seed);
  how.training = options.split == "train";
  how.strict = config.images.strict;
  how.threads = config.images.threads;
  check_sheet_size(options, how.side);
  const std::unique_ptr<ImageSet> images = open_images(source);
  ImageLoader loader(*images, config.augment, how);
  PreviewSheet sheet(*images, options.columns, how.side);
  ImageBatch batch;
  for (int64_t row = 0; row < options.rows && loader.next(batch); ++row) {
    if (options.original) sheet.add_originals(batch);
    sheet.add_seen(batch, loader.augmenter());
  }
  write_contact_sheet(sheet.pictures(), options.columns, options.output);
  fmt::print("{}: {} of {}, {} px, as the network sees them in {}{}\n{}", options.output,
             counted(sheet.seen(), "image"), source, how.side,
             how.training ? "training" : "evaluation",
             options.original ? ", each below its original" : "", sheet.lines());
}

}  // namespace rondo::cli
