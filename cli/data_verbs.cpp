// Command lines of rondo data, and rondo data check: which images of a set cannot be read.
#include "cli/data_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/usage.h"
#include "cli/verbs.h"
#include "rondo/base/memory_limit.h"
#include "rondo/base/text.h"
#include "rondo/image/sources.h"

namespace rondo::cli {
namespace {

constexpr const char* kSpecHelp =
    "a folder of class folders, a .tar of one, CIFAR binaries or IDX files; the path may go on "
    "with "
    "a split (cifar10/train) and end in a part (#:-1000)";

void add_check(CLI::App* data) {
  auto options = std::make_shared<DataCheckOptions>();
  CLI::App* verb = data->add_subcommand("check", "decode every image and list the broken ones");
  verb->add_option("images", options->spec, kSpecHelp)->required();
  verb->add_option("--threads", options->threads, "CPU threads; 0 = one per core")
      ->check(whole_number(0, kMaxThreads));
  verb->add_flag("--json", options->json, "print JSON");
  verb->callback([options] { run_data_check(*options); });
}

void add_preview(CLI::App* data) {
  auto options = std::make_shared<DataPreviewOptions>();
  DataPreviewOptions& o = *options;
  CLI::App* verb = data->add_subcommand(
      "preview", "a contact sheet of images as the network will see them, augmented and mixed");
  verb->add_option("config", o.config, "a recipe, a row of a table, or a TOML file")->required();
  verb->add_flag("--mini", o.mini, "the small size of the recipe");
  verb->add_option("--data", o.folders, "where a named data set is: NAME=DIR, or DIR alone")
      ->take_all()
      ->expected(1);
  verb->add_option("-o,--output", o.output, "PNG file to write")->required();
  verb->add_option("--set", o.set, "change a key, for example data.train=FOLDER")
      ->take_all()
      ->expected(1);
  verb->add_option("--rows", o.rows, "rows of images; each is mixed as a batch of its own")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  verb->add_option("--columns", o.columns, "images of a row")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  verb->add_option("--split", o.split, "valid, test: as they are prepared for evaluation")
      ->check(CLI::IsMember({"train", "valid", "test"}));
  verb->add_flag("--original", o.original, "above each row the same images as they are stored");
  verb->callback([options] { run_data_preview(*options); });
}

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
      app.add_subcommand("data", "look at data before training on them; get packaged ones");
  verb->require_subcommand(1);
  add_check(verb);
  add_preview(verb);
  auto name = std::make_shared<std::string>();
  CLI::App* get = verb->add_subcommand("get", "install a data set that Debian packages");
  get->add_option("name", *name, "as recipes/data.toml names it, for example fashion-mnist")
      ->required();
  get->callback([name] { run_data_get(*name); });
}

}  // namespace rondo::cli
