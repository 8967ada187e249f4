// Scores an image network on a set of images.
#include "cli/engine/eval_tasks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/train/image_score.h"
#include "rondo/train/image_task.h"

namespace rondo::cli {
namespace {

// Labels are indices into the sorted list of a set's classes. In a set that lacks a class or has
// others, they do not match the classes the network was trained on.
void compare_classes(const ImageSet& images, const ClassNames& names, const std::string& source) {
  for (size_t i = 0; i < images.classes().size(); ++i) {
    const std::string number = std::to_string(i);
    const std::string& here = images.classes()[i];
    const std::string& there = names.ids[i];
    if (here == there || here == number || there == number) continue;
    log_warn("{}: class {} is '{}', but the network was trained with '{}'", source, i,
             printable(here), printable(there));
    return;
  }
}

double percent_of(const ImageScore::Class& c) {
  return 100.0 * static_cast<double>(c.right) / static_cast<double>(c.images);
}

struct ImageTest {
  ImageScore score;
  std::unique_ptr<ImageSet> images;
  TestItems items;
};

void print_image_score_json(const ImageTest& test) {
  const ImageScore& score = test.score;
  const ImageSet& images = *test.images;
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
      {"metrics", metrics_json(test.items)},
      {"unreadable", unreadable},
      {"by_class", by_class}};
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_image_score(const ImageTest& test) {
  const ImageScore& score = test.score;
  fmt::print("images            {}\n", with_commas(score.images));
  fmt::print("accuracy          {:.2f} %{}\n", score.accuracy(),
             interval_text("accuracy", test.items));
  fmt::print("top-5 accuracy    {:.2f} %{}\n", score.top_five(),
             interval_text("top_five", test.items));
  fmt::print("loss              {:.4f}\n", score.loss());
  fmt::print("images per second {:.0f}\n", static_cast<double>(score.images) / score.seconds);
  if (!score.bad.empty()) {
    fmt::print("could not be read {}\n", with_commas(static_cast<int64_t>(score.bad.size())));
  }
}

ImageTest test_images(const EvalOptions& options) {
  const ImageModel model = load_image_model(options.run, options.loops, verify_as(options.load));
  const std::string source = test_source(options);
  const std::string key = options.data.empty() ? "data." + options.split : "--data";
  ImageTest test;
  test.images = open_labeled_images(source, key, image_classes(model.config), nullptr);
  compare_classes(*test.images, model.names, key + ": " + source);
  ImageScoreOptions how;
  how.side = image_side(model.config);
  how.rows = options.decoding.batch;
  how.threads = options.compute.threads;
  how.progress = true;
  how.items = &test.items;
  test.score = score_images(model.network, *test.images, model.augment, how);
  if (test.score.images > 0) return test;
  throw Error(ExitCode::bad_input, fmt::format("{}: {}: none of {} images could be read", key,
                                               source, test.images->count()));
}

}  // namespace

TestItems evaluate_images(const EvalOptions& options) {
  ImageTest test = test_images(options);
  options.json ? print_image_score_json(test) : print_image_score(test);
  return std::move(test.items);
}

TestItems image_items(const EvalOptions& options) { return test_images(options).items; }

}  // namespace rondo::cli
