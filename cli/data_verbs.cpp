// Command lines of rondo data, and rondo data check: which images of a set cannot be read.
#include "cli/data_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/image/sources.h"

namespace rondo::cli {
namespace {

// How many images each class has.
std::vector<int64_t> class_sizes(const ImageSet& images) {
  std::vector<int64_t> sizes(images.classes().size());
  for (int64_t i = 0; i < images.count(); ++i) ++sizes[static_cast<size_t>(images.label(i))];
  return sizes;
}

void print_check_json(const ImageSet& images, const std::vector<BadImage>& broken) {
  const std::vector<int64_t> sizes = class_sizes(images);
  nlohmann::json classes = nlohmann::json::array();
  for (size_t c = 0; c < sizes.size(); ++c) {
    classes.push_back(
        {{"class", images.classes()[c]}, {"title", images.titles()[c]}, {"images", sizes[c]}});
  }
  nlohmann::json list = nlohmann::json::array();
  for (const BadImage& bad : broken) {
    list.push_back({{"index", bad.index}, {"name", bad.name}, {"reason", bad.reason}});
  }
  const nlohmann::json out = {{"images", images.count()}, {"classes", classes}, {"broken", list}};
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_check(const ImageSet& images, const std::vector<BadImage>& broken) {
  const std::vector<int64_t> sizes = class_sizes(images);
  const auto [fewest, most] = std::minmax_element(sizes.begin(), sizes.end());
  fmt::print("images   {}\n", with_commas(images.count()));
  fmt::print("classes  {}, of {} to {} images\n", with_commas(static_cast<int64_t>(sizes.size())),
             with_commas(*fewest), with_commas(*most));
  fmt::print("broken   {}\n", with_commas(static_cast<int64_t>(broken.size())));
  for (const BadImage& bad : broken) fmt::print("{}\n", bad.reason);  // which names the file
}

}  // namespace

void run_data_check(const DataCheckOptions& options) {
  const std::unique_ptr<ImageSet> images = open_images(options.spec);
  const std::vector<BadImage> broken = check_images(*images, options.threads);
  options.json ? print_check_json(*images, broken) : print_check(*images, broken);
  if (broken.empty()) return;
  if (std::fflush(stdout) != 0) {  // nobody looks at it after an Error
    throw Error(ExitCode::io, "standard output: cannot write");
  }
  throw Error(
      ExitCode::bad_input,
      fmt::format("{}: {} of {} images cannot be read", printable(options.spec),
                  with_commas(static_cast<int64_t>(broken.size())), with_commas(images->count())),
      "remove or replace them; training passes them over unless data.strict is set");
}

void add_data_verbs(CLI::App& app) {
  CLI::App* verb =
      add_verb(app, {"data", "look at data before training on them; get packaged ones", ""});
  verb->require_subcommand(1);
  auto check = std::make_shared<DataCheckOptions>();
  add_verb(
      *verb,
      {"check", "decode every image and list the broken ones", "rondo data check photos/train"},
      check)
      ->callback([check] { run_data_check(*check); });
  auto preview = std::make_shared<DataPreviewOptions>();
  add_verb(
      *verb,
      {"preview", "a contact sheet of images as the network will see them, augmented and mixed",
       "rondo data preview experiment.toml --set data.train=photos/train -o sheet.png"},
      preview)
      ->callback([preview] { run_data_preview(*preview); });
  auto get = std::make_shared<DataGetOptions>();
  add_verb(*verb,
           {"get", "install a data set that Debian packages", "rondo data get fashion-mnist"}, get)
      ->callback([get] { run_data_get(*get); });
}

}  // namespace rondo::cli
