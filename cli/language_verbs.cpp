// Command lines of rondo eval, compare, generate, serve, state and tokenizer.
#include "cli/language_verbs.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command_line.h"
#include "cli/engine_loader.h"
#include "cli/serve_options.h"
#include "rondo/base/error.h"
#include "rondo/base/server_signals.h"

namespace rondo::cli {
namespace {

// An option of `rondo eval` that only some tasks support.
struct TaskOption {
  const char* name;
  std::vector<std::string> tasks;
  const char* models;
};

// Rejects options that would otherwise be silently ignored.
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
                             "--length-penalty", "--max-length", "--precision", "--signals"}) {
      all.push_back({name, {"translation"}, "translation models"});
    }
    return all;
  }();
  for (const TaskOption& o : kOptions) {
    const CLI::Option* option = verb.get_option_no_throw(o.name);  // 'compare' lacks some
    if (option == nullptr || option->count() == 0) continue;
    if (std::find(o.tasks.begin(), o.tasks.end(), task) != o.tasks.end()) continue;
    throw Error(ExitCode::usage, fmt::format("{}: {} is for {}", run, o.name, o.models),
                "omit it, or choose another model");
  }
}

void add_eval(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* verb = add_verb(app,
                            {"eval",
                             "score a language model on documents, a translation model "
                             "on sentence pairs, an image network on labeled images",
                             "rondo eval runs/static --split test --json"},
                            options);
  verb->callback([options, verb, &exit_code] {
    refuse_foreign_options(*verb, options->run, check_trained(options->run, ""));
    exit_code = run_engine("eval", *options);
  });
}

void add_compare(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* verb =
      add_verb(app,
               {"compare", "compare two models on the same data, with a significance test",
                "rondo compare runs/static runs/dynamic"},
               options);
  verb->callback([options, verb, &exit_code] {
    const std::string task = check_trained(options->eval.run, "");
    check_trained(options->other, task);
    refuse_foreign_options(*verb, options->eval.run, task);
    exit_code = run_engine("compare", *options);
  });
}

void add_generate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<GenerateOptions>();
  add_verb(app,
           {"generate", "generate text with a language model",
            "rondo generate runs/lm --prompt \"Once upon a time\" -n 200 --temperature 0.8"},
           options)
      ->callback([options, &exit_code] {
        check_trained(options->run, "lm");
        exit_code = run_engine("generate", *options);
      });
}

// "RUN" or "NAME=RUN".
std::string run_of(const std::string& given) {
  const size_t equals = given.find('=');
  const bool named = equals != std::string::npos && given.find('/') > equals;
  return named ? given.substr(equals + 1) : given;
}

void add_serve(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ServeVerb>();
  add_verb(app,
           {"serve", "serve trained models over HTTP: OpenAI's API, saved states, a web page",
            "rondo serve runs/novel de-en=runs/multi30k --listen 127.0.0.1:8080"},
           options)
      ->callback([options, &exit_code] {
        block_server_signals();  // before libraries are loaded, which start threads
        for (const std::string& run : options->runs) check_trained(run_of(run), "");
        exit_code = run_engine("serve", *options);
      });
}

void add_state(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      add_verb(app, {"state", "process a document once and keep its state in a small file", ""});
  verb->require_subcommand(1);
  auto read = std::make_shared<StateReadOptions>();
  add_verb(*verb,
           {"read", "process a document and save the resulting state",
            "rondo state read runs/lm book.txt -o book.state"},
           read)
      ->callback([read, &exit_code] {
        check_trained(read->run, "lm");
        exit_code = run_engine("state read", *read);
      });
  auto info = std::make_shared<StateInfoOptions>();
  add_verb(*verb, {"info", "describe a state file", "rondo state info book.state"}, info)
      ->callback([info, &exit_code] { exit_code = run_engine("state info", *info); });
  auto fork = std::make_shared<StateForkOptions>();
  add_verb(*verb,
           {"fork", "verify and copy a state file, to continue it twice",
            "rondo state fork book.state -o copy.state"},
           fork)
      ->callback([fork, &exit_code] { exit_code = run_engine("state fork", *fork); });
}

void add_tokenizer(CLI::App& app) {
  CLI::App* verb = add_verb(app, {"tokenizer", "train SentencePiece tokenizers", ""});
  verb->require_subcommand(1);
  auto train = std::make_shared<TokenizerOptions>();
  add_verb(*verb,
           {"train", "train a tokenizer on text",
            "rondo tokenizer train books/ --vocab 8192 -o books.model"},
           train)
      ->callback([train] { run_tokenizer_train(*train); });
}

}  // namespace

void add_language_verbs(CLI::App& app, int& exit_code) {
  add_eval(app, exit_code);
  add_compare(app, exit_code);
  add_generate(app, exit_code);
  add_serve(app, exit_code);
  add_state(app, exit_code);
  add_tokenizer(app);
}

}  // namespace rondo::cli
