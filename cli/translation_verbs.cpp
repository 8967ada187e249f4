// Command lines of the translation verbs.
#include "cli/translation_verbs.h"

#include "cli/command_line.h"
#include "cli/engine_loader.h"
#include "cli/verbs.h"

namespace rondo::cli {

void add_translation_verbs(CLI::App& app, int& exit_code) {
  auto translate = std::make_shared<TranslateOptions>();
  add_verb(app,
           {"translate", "translate stdin to stdout, line by line",
            "rondo translate runs/ringformer --beam 4 < input.txt > output.txt"},
           translate)
      ->callback([translate, &exit_code] {
        check_trained(translate->run, "translation");
        exit_code = run_engine("translate", *translate);
      });

  auto average = std::make_shared<AverageOptions>();
  add_verb(app,
           {"average", "average the weights of checkpoints or models",
            "rondo average runs/ringformer --last 5 -o mean.safetensors"},
           average)
      ->callback([average, &exit_code] { exit_code = run_engine("average", *average); });
}

}  // namespace rondo::cli
