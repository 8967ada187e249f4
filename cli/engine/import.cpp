// rondo import: converts another program's weights to a model file.
#include "rondo/model/import.h"

#include <fmt/format.h>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "rondo/base/text.h"
#include "rondo/infer/classifier.h"

namespace rondo::cli {

void run_import(const ImportOptions& options) {
  start_engine();
  const ResolvedModel model = resolve_model(options.config, options.set);
  std::map<std::string, std::string> metadata;
  if (!options.classes.empty()) {
    metadata[kClassNamesKey] = dump_class_names(read_names_for(model.config, options.classes));
  }
  const std::unique_ptr<Layout> layout = make_layout(options.program, model.config);
  const std::shared_ptr<Network> network = build_network(model.config);
  const SafetensorsFile file = SafetensorsFile::open(options.file);
  file.verify();
  import_weights(*network, file, *layout, options.all);
  save_model(options.output, model.config, *network, metadata);
  fmt::print("{}: {} of {} imported from {}\n", options.output,
             counted(static_cast<int64_t>(file.entries().size()), "tensor"), options.file,
             options.program);
}

}  // namespace rondo::cli
