// rondo info: what a model costs, beside what its paper prints.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/engine/session.h"
#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/model/zoo.h"
#include "rondo/study/cost.h"

namespace rondo::cli {
namespace {

const ZooEntry* zoo_entry(const std::string& name) {
  for (const ZooEntry& entry : zoo()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

nlohmann::json paper_json(const ZooEntry& entry) {
  const PaperFigures& f = entry.figures;
  nlohmann::json paper = {{"paper", entry.paper}, {"row", entry.row}};
  if (f.parameters > 0) {
    paper[f.without_embeddings ? "parameters_without_embeddings" : "parameters"] =
        std::llround(f.parameters);
    paper["exact"] = f.exact;
  }
  if (f.multiply_adds > 0) {
    paper[f.with_norms ? "macs_with_norms" : "macs"] = f.multiply_adds * 1e9;
  }
  if (!f.note.empty()) paper["note"] = f.note;
  return paper;
}

void print_json(const std::string& name, const Cost& cost, const ZooEntry* entry) {
  nlohmann::json parts = nlohmann::json::array();
  for (const CostPart& part : cost.parts) {
    parts.push_back({{"name", part.name},
                     {"parameters", part.parameters},
                     {"shared", part.shared},
                     {"macs", part.multiply_adds}});
  }
  const nlohmann::json out = {
      {"name", name},
      {"parameters", cost.parameters},
      {"parameters_without_embeddings", cost.without_embeddings},
      {"parameters_shared", cost.shared},
      {"parameters_per_level", cost.per_level},
      {"parts", parts},
      {"macs", cost.multiply_adds},
      {"macs_with_norms", cost.with_norms()},
      {"paper", entry == nullptr ? nlohmann::json() : paper_json(*entry)},
  };
  fmt::print("{}\n", out.dump(2));
}

void print_paper(const ZooEntry& entry) {
  const PaperFigures& f = entry.figures;
  fmt::print("\n{}, {}\n", entry.paper, entry.row);
  if (f.parameters > 0) {
    const std::string count =
        f.exact ? with_commas(static_cast<int64_t>(f.parameters)) : si_count(f.parameters);
    fmt::print("  paper: parameters{} {}\n", f.without_embeddings ? " without embeddings" : "",
               count);
  }
  if (f.multiply_adds > 0) {
    fmt::print("  paper: multiply-adds{} {} G\n", f.with_norms ? " with norms" : "",
               f.multiply_adds);
  }
  if (!f.note.empty()) fmt::print("  note: {}\n", f.note);
}

// Four decimals of a billion, as the papers' figures are compared to; small models in plain units.
std::string multiply_adds_text(double count) {
  return count < 1e8 ? si_count(count) : fmt::format("{:.4f} G", count / 1e9);
}

void print_table(const std::string& name, const Cost& cost, const ZooEntry* entry) {
  fmt::print("{}\n\n", name);
  const auto row = [](const char* what, int64_t count) {
    fmt::print("{:<34}{:>16}\n", what, with_commas(count));
  };
  row("parameters", cost.parameters);
  row("  without embeddings and head", cost.without_embeddings);
  row("  shared by several levels", cost.shared);
  row("  of one level each", cost.per_level);
  fmt::print("{:<34}{:>16}\n", "multiply-adds", multiply_adds_text(cost.multiply_adds));
  fmt::print("{:<34}{:>16}\n\n", "  with 5 per normalised element",
             multiply_adds_text(cost.with_norms()));
  fmt::print("{:<24}{:>16}{:>16}{:>16}\n", "part", "parameters", "of them shared", "multiply-adds");
  for (const CostPart& part : cost.parts) {
    fmt::print("{:<24}{:>16}{:>16}{:>16}\n", part.name, with_commas(part.parameters),
               with_commas(part.shared), si_count(part.multiply_adds));
  }
  if (entry != nullptr) print_paper(*entry);
}

}  // namespace
}  // namespace rondo::cli

void rondo_engine_info(const rondo::cli::InfoOptions& options) {
  using namespace rondo;
  cli::start_engine();
  ResolvedModel model = resolve_model(options.model, options.set);
  apply_sizes(model.config, {options.image, options.classes, options.vocabulary});
  if (options.tokens != 0 && std::string(model.config.task()) == "image") {
    throw Error(ExitCode::usage,
                fmt::format("--tokens does not apply to a model of kind {}", model.config.kind()));
  }
  const Cost cost = measure_cost(model.config, options.tokens);
  const ZooEntry* entry = cli::zoo_entry(options.model);
  options.json ? cli::print_json(model.name, cost, entry)
               : cli::print_table(model.name, cost, entry);
}
