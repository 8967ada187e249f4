// Command line of rondo classify.
#include "cli/image_verbs.h"

#include "cli/engine_loader.h"
#include "cli/usage.h"
#include "cli/verbs.h"

namespace rondo::cli {

void add_image_verbs(CLI::App& app) {
  auto options = std::make_shared<ClassifyOptions>();
  ClassifyOptions& o = *options;
  CLI::App* verb = app.add_subcommand("classify", "say what is on images, with probabilities");
  verb->add_option("run", o.run, "a run folder, or a model file (.safetensors)")->required();
  verb->add_option("paths", o.paths, "images (.jpg, .jpeg, .png) and folders of them");
  verb->add_option("--list", o.list, "also those of this file, one path a line (- = stdin)");
  verb->add_option("--top", o.top, "so many of the likeliest classes")
      ->check(whole_number(1, 1 << 24))
      ->capture_default_str();
  verb->add_option("--batch", o.batch, "images classified together")
      ->check(whole_number(1, 65536))
      ->capture_default_str();
  verb->add_option("--loops", o.loops,
                   "loops or levels played instead of those trained with; 0 = those")
      ->check(whole_number(0, 100000));
  verb->add_option("--classes", o.classes,
                   "names of the classes, one a line (name, or id TAB name); default: the model's");
  verb->add_option("--set", o.set,
                   "how images are prepared, for example augment.crop_ratio=1; default: the run's")
      ->take_all()
      ->expected(1);
  add_loading(verb, o.load);
  add_computing(verb, o.compute);
  verb->add_flag("--json", o.json, "one JSON object a line");
  verb->callback([options] {
    if (options->paths.empty() && options->list.empty()) {
      throw Error(ExitCode::usage, "classify: no images are given",
                  "name files or folders, or a list of them: --list FILE, --list - for stdin");
    }
    check_trained(options->run, "image");
    run_engine("rondo_engine_classify", *options);
  });
}

}  // namespace rondo::cli
