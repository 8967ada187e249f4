// Command lines of the translation verbs.
#include "cli/translation_verbs.h"

#include "cli/engine_loader.h"
#include "cli/usage.h"

namespace rondo::cli {
namespace {

void add_translate(CLI::App& app) {
  auto options = std::make_shared<TranslateOptions>();
  TranslateOptions& o = *options;
  CLI::App* verb = app.add_subcommand("translate", "translate stdin to stdout, line for line");
  verb->add_option("run", o.run, "a run folder, or a model file (.safetensors)")->required();
  verb->add_option("--input", o.input, "text file instead of stdin (plain, .gz, .zst)");
  verb->add_option("--tokenizer", o.tokenizer, "SentencePiece model (default: the run's)");
  add_decoding(verb, o.decoding);
  verb->add_option("--n-best", o.n_best, "so many translations of each line, as Moses prints them")
      ->check(whole_number(1, 1000));
  verb->add_option("--buffer", o.buffer, "most lines read ahead, to be batched by length")
      ->check(whole_number(1, 1 << 20));
  add_loading(verb, o.load);
  add_computing(verb, o.compute);
  verb->add_flag("--json", o.json, "one JSON object a line");
  verb->callback([options] {
    check_trained(options->run, "translation");
    run_engine("rondo_engine_translate", *options);
  });
}

void add_average(CLI::App& app) {
  auto options = std::make_shared<AverageOptions>();
  CLI::App* verb = app.add_subcommand("average", "average the weights of checkpoints or models");
  verb->add_option("models", options->models, "a run folder, or several model files")->required();
  verb->add_option("-o,--output", options->output, "model file to write")->required();
  verb->add_option("--last", options->last,
                   "of a run: its newest so many checkpoints; 0 = all kept")
      ->check(whole_number(0, 1000));
  add_loading(verb, options->load);
  verb->callback([options] { run_engine("rondo_engine_average", *options); });
}

}  // namespace

void add_decoding(CLI::App* verb, DecodingOptions& o) {
  verb->add_option("--beam", o.beam, "hypotheses followed; 1 = greedy")
      ->check(whole_number(1, 1000));
  verb->add_option("--length-penalty", o.length_penalty,
                   "hypotheses are ranked by log p / length^this")
      ->check(CLI::Range(0.0, 10.0));
  verb->add_option("--max-length", o.max_length, "most tokens of a translation")
      ->check(whole_number(1, 1 << 20));
  verb->add_option("--batch", o.batch, "sentences translated together")
      ->check(whole_number(1, 65536));
  verb->add_option("--weights", o.weights, "how linear maps are kept")
      ->check(CLI::IsMember({"fp32", "bf16", "int8"}));
  verb->add_option("--signals", o.signals, "RingFormer: level signals folded into the weights")
      ->check(CLI::IsMember({"folded", "apart"}));
}

void add_translation_verbs(CLI::App& app) {
  add_translate(app);
  add_average(app);
}

}  // namespace rondo::cli
