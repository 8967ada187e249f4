// Command line of rondo classify.
#include "cli/image_verbs.h"

#include "cli/command_line.h"
#include "cli/engine_loader.h"
#include "cli/verbs.h"
#include "rondo/base/error.h"

namespace rondo::cli {

void add_image_verbs(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ClassifyOptions>();
  CLI::App* verb = add_verb(app,
                            {"classify", "classify images, with probabilities",
                             "rondo classify runs/sret photo.jpg --top 3"},
                            options);
  verb->callback([options, &exit_code] {
    check_trained(options->run, "image");
    if (options->paths.empty() && options->list.empty()) {
      throw Error(ExitCode::usage, "classify: no images given",
                  "name files or folders, or a list of them: --list FILE, --list - for stdin");
    }
    exit_code = run_engine("classify", *options);
  });
}

}  // namespace rondo::cli
