// Model cards and config.json.
#include "rondo/project/model_card.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rondo/base/text.h"
#include "rondo/base/version.h"

namespace rondo {
namespace {

std::string task_words(const std::string& task) {
  if (task == "lm") return "a language model";
  return task == "translation" ? "a translation model" : "an image network";
}

// The last part of a path, to keep local folders private.
std::string data_name(const std::string& spec) {
  const size_t slash = spec.find_last_of('/', spec.find('#'));
  return slash == std::string::npos ? spec : spec.substr(slash + 1);
}

std::string train_data_name(const RunConfig& config) {
  const std::string task = config.model.task();
  return data_name(task == "image"         ? config.images.train
                   : task == "translation" ? config.pairs.train
                                           : config.data.train);
}

std::string tokenizer_words(const ExportFacts& facts) {
  if (!facts.trained.run || std::string(facts.trained.model.task()) == "image") return "";
  RunConfig run = *facts.trained.run;
  std::vector<std::string> names;
  for (const auto& [side, field] : tokenizer_fields(run)) {
    const bool of_task = (side == "text") == (std::string(run.model.task()) == "lm");
    if (!of_task || field->empty()) continue;
    names.push_back(is_tokenizer_file(*field) ? "tokenizer." + side + ".model" : *field);
  }
  return join(names, ", ");
}

void add_scores(const ExportFacts& facts, std::string& text) {
  if (!facts.run || !facts.run->best) return;
  const RunScore& best = *facts.run->best;
  text +=
      fmt::format("\n## Scores\n\n| metric | value | step |\n|---|---|---|\n| {} | {:.4f} | {} |\n",
                  best.metric, best.value, with_commas(best.step));
  text += "\nMeasured on the validation data during training. Use `rondo eval` for other data.\n";
}

}  // namespace

nlohmann::json experiment_json(const RunConfig& config) {
  nlohmann::json json = nlohmann::json::object();
  std::istringstream dump(dump_run_config(config));
  nlohmann::json* section = &json;
  for (std::string line; std::getline(dump, line);) {
    if (!line.empty() && line.front() == '[') {
      section = &json;
      for (const std::string& part : split(line.substr(1, line.find(']') - 1), '.')) {
        section = &(*section)[part];
      }
    }
    const size_t equals = line.find(" = ");
    if (equals == std::string::npos) continue;
    const std::string value = line.substr(equals + 3);
    const auto parsed = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
    (*section)[line.substr(0, equals)] = parsed.is_discarded() ? nlohmann::json(value) : parsed;
  }
  return json;
}

nlohmann::json export_config(const ExportFacts& facts) {
  const ModelConfig& model = facts.trained.model;
  RunConfig config = facts.trained.run.value_or(RunConfig());
  config.model = model;
  nlohmann::json json = {{"format", "rondo-export-1"},   {"rondo", kVersion},
                         {"task", model.task()},         {"kind", model.kind()},
                         {"precision", facts.precision}, {"parameters", facts.parameters},
                         {"step", facts.step},           {"tokenizer", tokenizer_words(facts)}};
  const nlohmann::json experiment = experiment_json(config);
  json["model"] = experiment.at("model");
  if (facts.trained.run) {
    for (const char* key : {"train", "optimizer", "schedule", "augment"}) {
      if (experiment.contains(key)) json[key] = experiment.at(key);
    }
    json["train"].erase("start");
    json["data"] = train_data_name(config);
    if (std::string(model.task()) == "translation") {
      json["languages"] = {config.pairs.source, config.pairs.target};
    }
  }
  if (facts.run) {
    json["commit"] = facts.run->commit;
    json["recipe"] = facts.run->recipe;
    if (facts.run->best) {
      json["score"] = {{"metric", facts.run->best->metric},
                       {"value", facts.run->best->value},
                       {"step", facts.run->best->step}};
    }
  }
  return json;
}

std::string model_card(const ExportFacts& facts) {
  const ModelConfig& model = facts.trained.model;
  const std::string task = model.task();
  // The other tasks have one kind of network.
  const std::string kind = task == "image" ? fmt::format(" of kind {}", model.kind()) : "";
  std::string text =
      fmt::format("# {}\n\n{}{} with {} parameters ({}), trained with Rondo {}.\n\n", facts.name,
                  task_words(task), kind, with_commas(facts.parameters), facts.precision, kVersion);
  text[text.find(task_words(task), facts.name.size())] = 'A';
  text += fmt::format("```\n{}\nrondo eval {} --data PATH\n```\n\n", use_command(facts.name, task),
                      facts.name);
  text += "## Training\n\n";
  const auto row = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("- {}: {}\n", name, value);
  };
  if (facts.trained.run) {
    const RunConfig& config = *facts.trained.run;
    row("data", train_data_name(config));
    if (task == "translation") {
      row("languages", fmt::format("{} to {}", config.pairs.source, config.pairs.target));
    }
    row("steps", facts.step > 0 ? fmt::format("{} of {}", with_commas(facts.step),
                                              with_commas(config.train.steps))
                                : with_commas(config.train.steps));
    row("optimizer",
        fmt::format("{}, learning rate {}", config.optimizer.kind, config.schedule.rate));
  }
  row("tokenizer", tokenizer_words(facts));
  if (!facts.trained.classes.empty()) {
    row("classes", fmt::format("{}, in classes.tsv", facts.trained.classes.count()));
  }
  if (facts.run) {
    row("recipe", facts.run->recipe);
    row("commit", facts.run->commit);
    row("CPU", facts.run->cpu);
    row("started", facts.run->started);
  }
  add_scores(facts, text);
  text +=
      "\n## Files\n\n"
      "`model.safetensors` contains the weights, with the configuration in its metadata; "
      "`config.json` the same\nconfiguration for other programs. Every Rondo command that takes a "
      "run also takes this folder.\n";
  return text;
}

}  // namespace rondo
