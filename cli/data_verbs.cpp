// Command lines of rondo data.
#include "cli/data_verbs.h"

#include "cli/command_line.h"
#include "cli/verbs.h"

namespace rondo::cli {
void add_data_verbs(CLI::App& app) {
  CLI::App* verb =
      add_verb(app, {"data", "inspect data before training, install packaged data sets", ""});
  verb->require_subcommand(1);
  auto check = std::make_shared<DataCheckOptions>();
  add_verb(*verb,
           {"check", "check text, sentence pairs or images and list problems",
            "rondo data check corpus.de corpus.en"},
           check)
      ->callback([check] { run_data_check(*check); });
  auto preview = std::make_shared<DataPreviewOptions>();
  add_verb(
      *verb,
      {"preview", "write a contact sheet of images as the network sees them, augmented and mixed",
       "rondo data preview experiment.toml --set data.train=photos/train -o sheet.png"},
      preview)
      ->callback([preview] { run_data_preview(*preview); });
  auto get = std::make_shared<DataGetOptions>();
  add_verb(*verb, {"get", "install a data set packaged by Debian", "rondo data get fashion-mnist"},
           get)
      ->callback([get] { run_data_get(*get); });
}

}  // namespace rondo::cli
