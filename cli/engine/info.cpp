// rondo info: the cost of a model, next to the figures in its paper.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/config/zoo.h"
#include "rondo/model/cost.h"

namespace rondo::cli {
namespace {

const ZooEntry* zoo_entry(const std::string& name) {
  for (const ZooEntry& entry : zoo()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

// A model's cost, and its entry in the papers.
struct Report {
  std::string name;
  Cost cost;
  CountRule rule = CountRule::macs;
  std::string rule_name;
  const ZooEntry* entry = nullptr;  // null: not a named model
  bool changed = false;             // by --set or a size: the paper's figures do not apply
};

const char* parameters_key(const PaperFigures& f) {
  return f.without_embeddings ? "parameters_without_embeddings" : "parameters";
}

// Figures stay text: a number would suggest digits that the paper does not print.
nlohmann::json paper_json(const Report& report) {
  const PaperFigures& f = report.entry->figures;
  nlohmann::json paper = {
      {"paper", report.entry->paper}, {"row", report.entry->row}, {"changed", report.changed}};
  if (report.changed) return paper;
  if (!f.parameters.empty()) paper[parameters_key(f)] = f.parameters + "M";
  if (!f.multiply_adds.empty()) {
    paper["operations"] = f.multiply_adds + "G";
    paper["count"] = f.count;
  }
  if (!f.authors_code.empty()) paper["authors_code"] = {{parameters_key(f), f.authors_code}};
  if (f.differs) paper["differs"] = true;
  if (!f.note.empty()) paper["note"] = f.note;
  return paper;
}

void print_json(const Report& report) {
  const Cost& cost = report.cost;
  nlohmann::json parts = nlohmann::json::array();
  for (const CostPart& part : cost.parts) {
    if (part.parameters == 0 && part.by(report.rule) == 0) continue;
    parts.push_back({{"name", part.name},
                     {"parameters", part.parameters},
                     {"shared", part.shared},
                     {"macs", part.multiply_adds},
                     {"operations", part.by(report.rule)}});
  }
  const nlohmann::json out = {
      {"name", report.name},
      {"parameters", cost.parameters},
      {"parameters_without_embeddings", cost.without_embeddings},
      {"parameters_shared", cost.shared},
      {"parameters_per_level", cost.per_level},
      {"parts", parts},
      {"macs", cost.multiply_adds},
      {"macs_with_norms", cost.with_norms()},
      {"count", report.rule_name},
      {"operations", cost.by(report.rule)},
      {"paper", report.entry == nullptr ? nlohmann::json() : paper_json(report)},
  };
  fmt::print("{}\n", out.dump(2));
}

void print_paper(const Report& report) {
  const PaperFigures& f = report.entry->figures;
  fmt::print("\n{}, {}\n", report.entry->paper, report.entry->row);
  if (report.changed) {
    fmt::print("  changed: the paper's figures are for the unmodified model\n");
    return;
  }
  const char* what = f.without_embeddings ? "parameters without embeddings" : "parameters";
  if (!f.parameters.empty()) fmt::print("  paper: {} {}M\n", what, f.parameters);
  if (!f.multiply_adds.empty()) {
    fmt::print("  paper: operations {} G (--count {})\n", f.multiply_adds, f.count);
  }
  if (!f.authors_code.empty()) fmt::print("  authors' code: {} {}\n", what, f.authors_code);
  if (!f.note.empty()) fmt::print("  note: {}\n", f.note);
}

// Billions with four decimals, for comparison with the papers' figures; SI units for small models.
std::string billions(double count) {
  return count < 1e8 ? si_count(count) : fmt::format("{:.4f} G", count / 1e9);
}

void print_table(const Report& report) {
  const Cost& cost = report.cost;
  fmt::print("{}\n\n", report.name);
  const auto row = [](const char* what, const std::string& count) {
    fmt::print("{:<34}{:>16}\n", what, count);
  };
  row("parameters", with_commas(cost.parameters));
  row("  without embeddings and head", with_commas(cost.without_embeddings));
  row("  shared by several levels", with_commas(cost.shared));
  row("  specific to one level", with_commas(cost.per_level));
  row("multiply-adds", billions(cost.multiply_adds));
  row("  with 5 per normalized element", billions(cost.with_norms()));
  if (report.rule == CountRule::authors) {
    row("operations by the authors' rule", billions(cost.by(report.rule)));
  }
  fmt::print("\n{:<24}{:>16}{:>16}{:>16}\n", "part", "parameters", "of which shared",
             report.rule == CountRule::macs ? "multiply-adds" : "operations");
  for (const CostPart& part : cost.parts) {
    if (part.parameters == 0 && part.by(report.rule) == 0) continue;
    fmt::print("{:<24}{:>16}{:>16}{:>16}\n", part.name, with_commas(part.parameters),
               with_commas(part.shared), si_count(part.by(report.rule)));
  }
  if (report.entry != nullptr) print_paper(report);
}

}  // namespace

void run_info(const InfoOptions& options) {
  start_engine();
  ResolvedModel model = resolve_model(options.model, options.set);
  apply_sizes(model.config, {options.image, options.classes, options.vocabulary});
  if (options.tokens != 0 && std::string(model.config.task()) == "image") {
    throw Error(ExitCode::usage,
                fmt::format("--tokens does not apply to a model of kind {}", model.config.kind()));
  }
  const std::string kind = model.config.kind();
  if (options.count == "authors" && kind == "language-model") {
    throw Error(ExitCode::usage, "--count authors does not apply to a model of kind language-model",
                "the rule is from a paper on translation and images");
  }
  Report report;
  report.name = model.name;
  report.cost = measure_cost(model.config, options.tokens);
  report.rule = count_rule(options.count);
  report.rule_name = options.count;
  report.entry = zoo_entry(options.model);
  report.changed = report.entry != nullptr &&
                   dump_model_config(model.config) != dump_model_config(report.entry->config());
  options.json ? print_json(report) : print_table(report);
}

}  // namespace rondo::cli
