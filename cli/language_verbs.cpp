// Command lines of the language-model verbs.
#include "cli/language_verbs.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/engine_loader.h"
#include "cli/translation_verbs.h"
#include "cli/usage.h"
#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/limits.h"
#include "rondo/config/paper_table.h"

namespace rondo::cli {
namespace {

constexpr const char* kRunHelp = "a run folder, or a model file (.safetensors)";
constexpr const char* kCacheHelp = "where tokenised documents are kept (default: ~/.cache/rondo)";
constexpr const char* kTokenizerHelp = "\"bytes\" or a SentencePiece model (default: the run's)";
constexpr int64_t kManyTokens = int64_t{1} << 50;

void add_train(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  options->exit_code = &exit_code;
  CLI::App* verb = app.add_subcommand("train", "train a model; the same command continues a run");
  verb->add_option("config", options->config,
                   "a recipe ('rondo recipes'), a row of a table (ringformer/table4:static, see "
                   "'rondo table list'), or a TOML file")
      ->required();
  verb->add_flag("--mini", options->mini, "the small size of the recipe, for a few CPU cores");
  verb->add_option("--data", options->data, "where a named data set is: NAME=DIR, or DIR alone")
      ->take_all()
      ->expected(1);
  verb->add_option("--set", options->set, "change a key, for example data.train=FOLDER")
      ->take_all()
      ->expected(1);
  verb->add_option("-o,--run", options->run, "run folder (default: runs/<name of the config>)");
  verb->add_option("--cache", options->cache, kCacheHelp);
  verb->add_flag(
      "--dry-run", options->dry_run,
      "say parameters, memory, steps and time, from a few real steps; makes no run folder");
  verb->add_flag("--json", options->json, "with --dry-run: print JSON");
  auto show = std::make_shared<bool>(false);
  verb->add_flag("--show-config", *show,
                 "print the whole configuration, with the file and line that set each key");
  add_kernels(verb, options->kernels);
  verb->callback([options, show] {
    const Experiment experiment =
        find_experiment({options->config, options->mini, options->data, options->set});
    if (*show) return fmt::print("{}", explain_experiment(experiment));
    run_engine("rondo_engine_train", *options);
  });
}

// Options of `rondo eval` that not every task knows, and models of which tasks do.
struct TaskOption {
  const char* name;
  std::vector<std::string> tasks;
  const char* models;
};

// An option that would be passed over without a word is refused instead.
void refuse_foreign_options(const CLI::App& verb, const std::string& run, const std::string& task) {
  static const std::vector<TaskOption> kOptions = [] {
    std::vector<TaskOption> all = {
        {"--loops", {"image"}, "image networks"},
        {"--batch", {"translation", "image"}, "translation models and image networks"}};
    for (const char* name : {"--tokenizer", "--cache"}) {
      all.push_back({name, {"lm", "translation"}, "language and translation models"});
    }
    for (const char* name :
         {"--rows", "--tokens", "--state-in", "--state-out", "--without-state"}) {
      all.push_back({name, {"lm"}, "language models"});
    }
    for (const char* name : {"--tokenize", "--agreement", "--score-only", "--beam",
                             "--length-penalty", "--max-length", "--weights", "--signals"}) {
      all.push_back({name, {"translation"}, "translation models"});
    }
    return all;
  }();
  for (const TaskOption& o : kOptions) {
    const CLI::Option* option = verb.get_option_no_throw(o.name);  // 'compare' lacks some
    if (option == nullptr || option->count() == 0) continue;
    if (std::find(o.tasks.begin(), o.tasks.end(), task) != o.tasks.end()) continue;
    throw Error(ExitCode::usage, fmt::format("{}: {} is for {}", run, o.name, o.models),
                "leave it out, or name another model");
  }
}

// Options that `eval` and `compare` share.
void add_test_data(CLI::App* verb, EvalOptions& o) {
  verb->add_option(
      "--data", o.data,
      "documents (a folder, a file, a .list), pairs (a prefix, a .tsv) or images (class folders, a "
      ".tar, CIFAR, IDX); default: the run's");
  verb->add_option("--split", o.split, "which of the run's data")
      ->check(CLI::IsMember({"train", "valid", "test"}));
  verb->add_option("--tokenizer", o.tokenizer, kTokenizerHelp);
  verb->add_option("--cache", o.cache, kCacheHelp);
  verb->add_option("--rows", o.rows, "language models: documents read side by side")
      ->check(whole_number(1, 65536));
  verb->add_option(
          "--tokens", o.tokens,
          "language models: score so many tokens at most, the beginning of every document; "
          "0 = all")
      ->check(whole_number(0, kManyTokens));
  add_decoding(verb, o.decoding);
  verb->get_option("--batch")->description("sentences translated, or images classified, together");
  verb->add_option("--loops", o.loops,
                   "images: loops or levels played instead of those trained with; 0 = those")
      ->check(whole_number(0, 100000));
  add_loading(verb, o.load);
  add_computing(verb, o.compute);
  verb->add_flag("--json", o.json, "print JSON");
}

void add_eval(CLI::App& app) {
  auto options = std::make_shared<EvalOptions>();
  EvalOptions& o = *options;
  CLI::App* verb = app.add_subcommand("eval",
                                      "score a language model on documents, a translation model "
                                      "on sentence pairs, an image network on labelled images");
  verb->add_option("run", o.run, kRunHelp)->required();
  add_test_data(verb, o);
  verb->add_option(
      "--items", o.items,
      "write the result of every item (image, sentence, block of 1,024 tokens) to this "
      "file, for comparisons");
  verb->add_option("--state-in", o.state_in, "what came before the (one) document");
  verb->add_option("--state-out", o.state_out, "write the state after the last document");
  verb->add_flag(
      "--without-state", o.without_state,
      "recurrent models: tokens read zeros in place of the states; what are they worth?");
  verb->add_option("--tokenize", o.tokenize, "translation: how BLEU parts words")
      ->check(CLI::IsMember({"13a", "none", "char"}));
  verb->add_flag("--agreement", o.agreement,
                 "translation: instead, how many sentences are decoded, one token after the other "
                 "with --weights, to the text that the network as in training gives");
  verb->add_flag("-b,--score-only", o.score_only, "translation: print the BLEU score alone");
  verb->callback([options, verb] {
    refuse_foreign_options(*verb, options->run, check_trained(options->run, ""));
    run_engine("rondo_engine_eval", *options);
  });
}

void add_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* verb =
      app.add_subcommand("compare", "test two models on the same data: is the difference real?");
  verb->add_option("a", options->eval.run, kRunHelp)->required();
  verb->add_option("b", options->other, "the model it is compared with, of the same task")
      ->required();
  add_test_data(verb, options->eval);
  verb->callback([options, verb] {
    const std::string task = check_trained(options->eval.run, "");
    check_trained(options->other, task);
    refuse_foreign_options(*verb, options->eval.run, task);
    run_engine("rondo_engine_compare", *options);
  });
}

void add_generate(CLI::App& app) {
  auto options = std::make_shared<GenerateOptions>();
  GenerateOptions& o = *options;
  CLI::App* verb = app.add_subcommand("generate", "write with a language model");
  verb->add_option("run", o.run, kRunHelp)->required();
  verb->add_option("--prompt", o.prompt, "text to continue");
  verb->add_option("--prompt-file", o.prompt_file, "file to continue, of any length (- = stdin)");
  verb->add_option("--state-in", o.state_in, "continue the document of this state");
  verb->add_option("--state-out", o.state_out, "write the state after the last token");
  verb->add_option("--tokenizer", o.tokenizer, kTokenizerHelp);
  verb->add_option("-n,--tokens", o.tokens, "tokens to write")->check(whole_number(0, kManyTokens));
  verb->add_option("--temperature", o.temperature, "0 = always the likeliest")
      ->check(CLI::Range(0.0, 100.0));
  verb->add_option("--top-k", o.top_k, "only the k likeliest; 0 = all")
      ->check(whole_number(0, 1 << 24));
  verb->add_option("--top-p", o.top_p, "only the likeliest that reach this probability")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--repetition-penalty", o.repetition_penalty, "above 1: avoid recent tokens")
      ->check(CLI::Range(0.01, 100.0));
  verb->add_option("--repetition-window", o.repetition_window, "how many tokens are recent")
      ->check(whole_number(1, kMaxRepetitionWindow));
  verb->add_option("--seed", o.seed, "another seed, another text");
  verb->add_option("--weights", o.weights, "how linear maps are kept while writing")
      ->check(CLI::IsMember({"fp32", "bf16", "int8"}));
  add_loading(verb, o.load);
  add_computing(verb, o.compute);
  verb->add_flag("--stream", o.stream, "print each token as it comes");
  verb->add_flag("--stats", o.stats, "say speed and memory on stderr");
  verb->callback([options] {
    check_trained(options->run, "lm");
    run_engine("rondo_engine_generate", *options);
  });
}

void add_state(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("state", "documents once read, kept as small files");
  verb->require_subcommand(1);
  auto read = std::make_shared<StateOptions>();
  read->verb = "read";
  CLI::App* reading = verb->add_subcommand("read", "read a document and keep the state after it");
  reading->add_option("run", read->run, kRunHelp)->required();
  reading->add_option("document", read->document, "text file (- = stdin)")->required();
  reading->add_option("--state-in", read->state, "what came before");
  reading->add_option("-o,--output", read->output, "state file to write")->required();
  reading->add_option("--tokenizer", read->tokenizer, kTokenizerHelp);
  add_loading(reading, read->load);
  add_computing(reading, read->compute);
  reading->callback([read] {
    check_trained(read->run, "lm");
    run_engine("rondo_engine_state", *read);
  });

  auto info = std::make_shared<StateOptions>();
  info->verb = "info";
  CLI::App* telling = verb->add_subcommand("info", "say what a state file holds");
  telling->add_option("state", info->state, "state file")->required();
  add_loading(telling, info->load);
  telling->add_flag("--json", info->json, "print JSON");
  telling->callback([info] { run_engine("rondo_engine_state", *info); });

  auto fork = std::make_shared<StateOptions>();
  fork->verb = "fork";
  CLI::App* copying = verb->add_subcommand("fork", "copy a state, checked, to continue it twice");
  copying->add_option("state", fork->state, "state file")->required();
  copying->add_option("-o,--output", fork->output, "state file to write")->required();
  add_loading(copying, fork->load);
  copying->callback([fork] { run_engine("rondo_engine_state", *fork); });
}

void add_tokenizer(CLI::App& app) {
  auto options = std::make_shared<TokenizerOptions>();
  CLI::App* verb = app.add_subcommand("tokenizer", "SentencePiece vocabularies");
  verb->require_subcommand(1);
  CLI::App* train = verb->add_subcommand("train", "learn a vocabulary from text");
  train->add_option("sources", options->sources, "folders, files or .list files")->required();
  train->add_option("-o,--output", options->output, "model file to write")->required();
  train->add_option("--vocab", options->vocabulary, "number of tokens")
      ->check(whole_number(256, 65536));
  train->add_option("--type", options->type, "kind of model")
      ->check(CLI::IsMember({"bpe", "unigram"}));
  train->callback([options] { run_tokenizer_train(*options); });
}

}  // namespace

void add_language_verbs(CLI::App& app, int& exit_code) {
  add_train(app, exit_code);
  add_eval(app);
  add_compare(app);
  add_generate(app);
  add_state(app);
  add_tokenizer(app);
}

}  // namespace rondo::cli
