// Scoring an image network on a set of images.
#include "cli/engine/eval_image.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/train/image_score.h"
#include "rondo/train/image_task.h"

namespace rondo::cli {
namespace {

struct LabelledSource {
  std::string spec;
  std::string key;  // for messages
};

LabelledSource labelled_source(const EvalOptions& options, const ImageDataConfig& data) {
  if (!options.data.empty()) return {options.data, "--data"};
  const std::string spec = options.split == "train"   ? data.train
                           : options.split == "valid" ? data.valid
                                                      : data.test;
  if (spec.empty()) {
    throw Error(ExitCode::usage, fmt::format("{}: names no {} data", options.run, options.split),
                "say which images: --data FOLDER of class folders");
  }
  return {spec, "data." + options.split};
}

// Labels are places in the sorted list of a set's classes. In a set that lacks a class, or has
// others, they stand for something else than the network learned.
void compare_classes(const ImageSet& images, const ClassNames& names, const LabelledSource& from) {
  for (size_t i = 0; i < images.classes().size(); ++i) {
    const std::string number = std::to_string(i);
    const std::string& here = images.classes()[i];
    const std::string& there = names.ids[i];
    if (here == there || here == number || there == number) continue;
    log_warn("{}: {}: class {} is '{}', the network learned '{}' as that number", from.key,
             from.spec, i, printable(here), printable(there));
    return;
  }
}

double percent_of(const ImageScore::Class& c) {
  return 100.0 * static_cast<double>(c.right) / static_cast<double>(c.images);
}

void print_image_score_json(const ImageScore& score, const ImageSet& images) {
  nlohmann::json by_class = nlohmann::json::array();
  for (size_t i = 0; i < score.by_class.size(); ++i) {
    const ImageScore::Class& c = score.by_class[i];
    by_class.push_back(
        {{"class", images.classes()[i]},
         {"title", images.titles()[i]},
         {"images", c.images},
         {"accuracy", c.images > 0 ? nlohmann::json(percent_of(c)) : nlohmann::json()}});
  }
  nlohmann::json unreadable = nlohmann::json::array();
  for (const BadImage& bad : score.bad) {
    unreadable.push_back({{"name", bad.name}, {"reason", bad.reason}});
  }
  const nlohmann::json out = {
      {"images", score.images},
      {"accuracy", score.accuracy()},
      {"top_five", score.top_five()},
      {"loss", score.loss()},
      {"images_per_second", static_cast<double>(score.images) / score.seconds},
      {"unreadable", unreadable},
      {"by_class", by_class}};
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_image_score(const ImageScore& score) {
  fmt::print("images            {}\n", with_commas(score.images));
  fmt::print("accuracy          {:.2f} %\n", score.accuracy());
  fmt::print("top-5 accuracy    {:.2f} %\n", score.top_five());
  fmt::print("loss              {:.4f}\n", score.loss());
  fmt::print("images per second {:.0f}\n", static_cast<double>(score.images) / score.seconds);
  if (!score.bad.empty()) {
    fmt::print("could not be read {}\n", with_commas(static_cast<int64_t>(score.bad.size())));
  }
}

}  // namespace

void evaluate_images(const EvalOptions& options) {
  const ImageModel model = load_image_model(options.run, options.loops);
  const LabelledSource from = labelled_source(options, model.data);
  const auto images =
      open_labelled_images(from.spec, from.key, image_classes(model.config), nullptr);
  compare_classes(*images, model.names, from);
  ImageScoreOptions how;
  how.side = image_side(model.config);
  how.rows = options.decoding.batch;
  how.threads = options.compute.threads;
  how.progress = true;
  const ImageScore score = score_images(*model.network, *images, model.augment, how);
  if (score.images == 0) {
    throw Error(ExitCode::bad_input, fmt::format("{}: {}: none of {} images could be read",
                                                 from.key, from.spec, images->count()));
  }
  options.json ? print_image_score_json(score, *images) : print_image_score(score);
}

}  // namespace rondo::cli
