// Options of the verbs that train models and use trained ones.
#include "cli/describe_common.h"
#include "rondo/base/limits.h"

namespace rondo::cli {
namespace {

constexpr double kManyTokens = static_cast<double>(int64_t{1} << 50);

// What `eval` and `compare` share.
void describe_test_data(OptionVisitor& v, EvalOptions& o) {
  v.option(
      "--data", o.data,
      "documents (a folder, a file, a .list), pairs (a prefix, a .tsv) or images (class folders, a "
      ".tar, CIFAR, IDX); default: the run's");
  v.option("--split", o.split, "which of the run's data", one_of({"train", "valid", "test"}));
  v.option("--tokenizer", o.tokenizer, kTokenizerHelp);
  v.option("--cache", o.cache, kCacheHelp);
  v.option("--rows", o.rows, "language models: documents read side by side", between(1, 65536));
  v.option("--tokens", o.tokens,
           "language models: score so many tokens at most, the beginning of every document; "
           "0 = all",
           between(0, kManyTokens));
  describe_decoding(v, o.decoding, "sentences translated, or images classified, together");
  v.option("--loops", o.loops,
           "images: loops or levels applied instead of those trained with; 0 = those",
           between(0, 100000));
  describe(v, o.load);
  describe(v, o.compute);
  v.flag("--json", o.json, kJsonHelp);
}

}  // namespace

void describe_decoding(OptionVisitor& v, DecodingOptions& o, const char* batch) {
  v.option("--beam", o.beam, "hypotheses followed; 1 = greedy", between(1, 1000));
  v.option("--length-penalty", o.length_penalty, "hypotheses are ranked by log p / length^this",
           between(0, 10));
  v.option("--max-length", o.max_length, "most tokens of a translation", between(1, 1 << 20));
  v.option("--batch", o.batch, batch, between(1, 65536));
  v.option("--precision", o.precision, "of the weights of linear maps",
           one_of({"fp32", "bf16", "int8"}));
  v.option("--signals", o.signals, "RingFormer: level signals folded into the weights",
           one_of({"folded", "apart"}));
}

void describe(OptionVisitor& v, TrainOptions& o) {
  v.argument("what", o.what,
             "data: a text, a folder of texts, two parallel files, or a folder of class folders; a "
             "recipe ('rondo recipes'), a TOML file, or a row of a table "
             "(ringformer/table4:static); or a run folder, which is continued");
  v.option("--recipe", o.recipe, "with data: train by this recipe instead of the task's small one");
  v.option("--tokenizer", o.tokenizer,
           "with data: a number of pieces to learn a tokenizer of (4096), \"bytes\", or a "
           "SentencePiece model");
  v.flag("--mini", o.mini, "the small size of the recipe, for a few CPU cores");
  v.option("--data", o.data, kNamedDataHelp);
  v.option("--set", o.set, "change a key, for example data.train=FOLDER");
  v.option("-o,--output", o.run, "run folder (default: runs/<name of the data or recipe>)");
  v.option("--cache", o.cache, kCacheHelp);
  v.flag("--dry-run", o.dry_run,
         "say parameters, memory, steps and time, from a few real steps; makes no run folder");
  v.flag("--json", o.json, "with --dry-run: print JSON");
  v.flag("--show-config", o.show_config,
         "print the whole configuration, with the file and line that set each key");
  v.option("--workers", o.workers,
           "train with so many processes on this machine (0, 1: one); on several machines start "
           "'rondo train' by torchrun, srun or mpirun, see docs/scale.md",
           between(0, 1024));
  v.option("--group-file", o.group_file,
           "several processes: they meet by this file, in a folder that all share");
  v.option("--group-address", o.group_address,
           "with --group-file: the address of the machine of rank 0 (default: 127.0.0.1)");
  v.option("--group-secret-file", o.group_secret,
           "several machines: a file with a secret that all processes know");
  v.option("--group-timeout", o.group_timeout, "seconds to wait for another process",
           between(1, 86400));
  describe_kernels(v, o.kernels);
}

void describe(OptionVisitor& v, NewOptions& o) {
  v.argument("name", o.name, "of the recipe: NAME.toml is written");
  v.option("--recipe", o.recipe, "the recipe to start from ('rondo recipes')");
  v.flag("--mini", o.mini, "its small size");
}

void describe(OptionVisitor& v, RunsOptions& o) {
  v.argument("folder", o.folder, "where to look", false);
  v.flag("--json", o.json, kJsonHelp);
}

void describe(OptionVisitor& v, ExportOptions& o) {
  v.argument("run", o.run, kRunHelp);
  v.required("-o,--output", o.output, "folder to write; it must not exist, or be empty");
  v.option("--precision", o.precision, "of the weights in the file: bf16 halves its size",
           one_of({"fp32", "bf16"}));
  describe(v, o.load);
}

void describe(OptionVisitor& v, EvalOptions& o) {
  v.argument("run", o.run, kRunHelp);
  describe_test_data(v, o);
  v.output("--items", o.items,
           "write the result of every item (image, sentence, block of 1,024 tokens) to this "
           "file, for comparisons");
  v.option("--state-in", o.state_in, "what came before the (one) document");
  v.output("--state-out", o.state_out, "write the state after the last document");
  v.flag("--without-state", o.without_state,
         "recurrent models: tokens read zeros in place of the states; what are they worth?");
  v.option("--tokenize", o.tokenize, "translation: how BLEU parts words",
           one_of({"13a", "none", "char"}));
  v.flag("--agreement", o.agreement,
         "translation: instead of a score, the share of sentences for which fast decoding with "
         "--precision writes exactly what the training network writes (both greedy); below 100 %, "
         "rounding changed a token");
  v.flag("-b,--score-only", o.score_only, "translation: print the BLEU score alone");
}

void describe(OptionVisitor& v, CompareOptions& o) {
  v.argument("a", o.eval.run, kRunHelp);
  v.argument("b", o.other, "the model it is compared with, of the same task");
  describe_test_data(v, o.eval);
}

void describe(OptionVisitor& v, GenerateOptions& o) {
  v.argument("run", o.run, kRunHelp);
  v.text("--prompt", o.prompt, "text to continue");
  v.option("--prompt-file", o.prompt_file, "file to continue, of any length (- = stdin)");
  v.option("--state-in", o.state_in, "continue the document of this state");
  v.output("--state-out", o.state_out, "write the state after the last token");
  v.option("--tokenizer", o.tokenizer, kTokenizerHelp);
  v.option("-n,--tokens", o.tokens, "tokens to write", between(0, kManyTokens));
  v.option("--temperature", o.temperature, "0 = always the likeliest", between(0, 100));
  v.option("--top-k", o.top_k, "only the k likeliest; 0 = all", between(0, 1 << 24));
  v.option("--top-p", o.top_p, "only the likeliest that reach this probability", between(0, 1));
  v.option("--repetition-penalty", o.repetition_penalty, "above 1: avoid recent tokens",
           between(0.01, 100));
  v.option("--repetition-window", o.repetition_window, "how many tokens are recent",
           between(1, kMaxRepetitionWindow));
  v.option("--seed", o.seed, "another seed, another text");
  v.option("--precision", o.precision, "of the weights of linear maps",
           one_of({"fp32", "bf16", "int8"}));
  describe(v, o.load);
  describe(v, o.compute);
  v.flag("--stream", o.stream, "print each token as it comes");
  v.flag("--stats", o.stats, "say speed and memory on stderr");
}

void describe(OptionVisitor& v, StateReadOptions& o) {
  v.argument("run", o.run, kRunHelp);
  v.argument("document", o.document, "text file (- = stdin)");
  v.option("--state-in", o.state, "what came before");
  v.output("-o,--output", o.output, "state file to write", true);
  v.option("--tokenizer", o.tokenizer, kTokenizerHelp);
  describe(v, o.load);
  describe(v, o.compute);
}

void describe(OptionVisitor& v, StateInfoOptions& o) {
  v.argument("state", o.state, "state file");
  describe(v, o.load);
  v.flag("--json", o.json, kJsonHelp);
}

void describe(OptionVisitor& v, StateForkOptions& o) {
  v.argument("state", o.state, "state file");
  v.output("-o,--output", o.output, "state file to write", true);
  describe(v, o.load);
}

void describe(OptionVisitor& v, TokenizerOptions& o) {
  v.argument("sources", o.sources, "folders, files or .list files");
  v.output("-o,--output", o.output, "model file to write", true);
  v.option("--vocab", o.vocabulary, "number of tokens", between(256, 65536));
  v.option("--type", o.type, "kind of model", one_of({"bpe", "unigram"}));
}

void describe(OptionVisitor& v, TranslateOptions& o) {
  v.argument("run", o.run, kRunHelp);
  v.option("--input", o.input, "text file (plain, .gz, .zst); - = stdin");
  v.option("--tokenizer", o.tokenizer, "SentencePiece model (default: the run's)");
  describe_decoding(v, o.decoding, "sentences translated together");
  v.option("--n-best", o.n_best, "so many translations of each line, as Moses prints them",
           between(1, 1000));
  v.option("--buffer", o.buffer, "most lines read ahead, to be batched by length",
           between(1, 1 << 20));
  describe(v, o.load);
  describe(v, o.compute);
  v.flag("--json", o.json, "one JSON object a line");
}

void describe(OptionVisitor& v, AverageOptions& o) {
  v.argument("models", o.models, "a run folder, or several model files");
  v.output("-o,--output", o.output, "model file to write", true);
  v.option("--last", o.last, "of a run: its newest so many checkpoints; 0 = all kept",
           between(0, 1000));
  describe(v, o.load);
}

void describe(OptionVisitor& v, ClassifyOptions& o) {
  v.argument("run", o.run, kRunHelp);
  v.argument("paths", o.paths, "images (.jpg, .jpeg, .png) and folders of them", false);
  v.option("--list", o.list, "also those of this file, one path a line (- = stdin)");
  v.option("--top", o.top, "so many of the likeliest classes", between(1, 1 << 24));
  v.option("--batch", o.batch, "images classified together", between(1, 65536));
  v.option("--loops", o.loops, "loops or levels applied instead of those trained with; 0 = those",
           between(0, 100000));
  v.option("--classes", o.classes,
           "names of the classes, one a line (name, or id TAB name); default: the model's");
  v.option("--set", o.set,
           "how images are prepared, for example augment.crop_ratio=1; default: the run's");
  describe(v, o.load);
  describe(v, o.compute);
  v.flag("--json", o.json, "one JSON object a line");
}

void describe(OptionVisitor& v, ScoreOptions& o) {
  v.argument("hypotheses", o.hypotheses,
             "translations, one per line (- = stdin; .gz and .zst are read too)");
  v.argument("references", o.references, "what they should be, line by line; one file or several");
  v.option("--against", o.against,
           "compare with these translations: difference and paired bootstrap test");
  v.option("--metrics", o.metrics, "bleu, chrf or both, with a comma between them");
  v.option("--tokenize", o.tokenize, "for BLEU; none = the text is tokenized already",
           one_of({"13a", "none", "char"}));
  v.option("--smooth", o.smooth, "for BLEU, where an order of n-grams has no match",
           one_of({"exp", "none", "floor", "add-k"}));
  v.flag("--effective-order", o.effective_order,
         "for BLEU of single sentences: leave out orders of which there are no n-grams");
  v.flag("--lowercase", o.lowercase, "for BLEU: disregard case (sacreBLEU's -lc)");
  v.flag("--chrf-lowercase", o.chrf_lowercase, "for chrF: disregard case");
  v.option("--chrf-word-order", o.chrf_word_order, "2 = chrF++", between(0, 2));
  v.flag("--confidence", o.confidence, "95 % interval by bootstrap resampling");
  v.option("--samples", o.samples, "resamples of --confidence and --against",
           between(1, 1'000'000));
  v.option("--seed", o.seed, "of the resamples", at_least(0));
  v.flag("-b,--score-only", o.score_only, "print only the numbers");
  v.flag("--json", o.json, kJsonHelp);
}

}  // namespace rondo::cli
