// rondo study: finds the kind, writes the page and the numbers.
#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "cli/engine/study_kinds.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"

namespace rondo::cli {
namespace {

using Study = study::StudyReport (*)(const StudyOptions&);

const std::map<std::string, Study>& studies() {
  static const std::map<std::string, Study> all = {
      {"activations", &study_activations},
      {"attention-distance", &study_attention_distance},
      {"cka", &study_cka},
      {"coefficients", &study_coefficients},
      {"cost", &study_cost},
      {"landscape", &study_landscape},
      {"signals", &study_signals},
      {"state", &study_state},
  };
  return all;
}

bool is_picture(const std::string& path) {
  return std::filesystem::path(path).extension() == ".svg";
}

}  // namespace

study::SubjectOptions subject_options(const StudyOptions& options, int64_t items) {
  study::SubjectOptions how;
  how.data = options.data;
  how.split = options.split;
  how.tokenizer = options.tokenizer;
  how.cache_folder = cache_folder(options.cache);
  how.items = options.items > 0 ? options.items : items;
  how.verify = verify_as(options.load);
  return how;
}

void run_study(const StudyOptions& options) {
  start_engine(options.compute);
  const auto found = studies().find(options.kind);
  if (found == studies().end()) {
    throw Error(ExitCode::failure, fmt::format("the engine has no study '{}'", options.kind),
                "rondo and librondo_engine.so have different versions: rebuild both");
  }
  const study::StudyReport report = found->second(options);
  if (!options.part.empty()) return;  // a child process of a landscape: the parent reports
  const bool named = !options.output.empty();
  const std::string path = named || options.json ? options.output : options.kind + ".html";
  if (is_picture(path)) {
    if (report.page.first_figure().empty()) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: this study of these models has no figure", path),
                  "write a page (.html) or use --json");
    }
    write_file(path, standalone_svg(report.page.first_figure()));
  } else if (!path.empty()) {
    write_file(path, report.page.html());
  }
  if (options.json) {
    using Handler = nlohmann::json::error_handler_t;
    fmt::print("{}\n", report.numbers.dump(2, ' ', false, Handler::replace));
  } else {
    fmt::print("{}{}\n", report.summary, path);
  }
}

}  // namespace rondo::cli
