// Options of the verbs that train models and use trained ones.
#include "cli/describe_common.h"
#include "rondo/base/limits.h"

namespace rondo::cli {
namespace {

constexpr double kManyTokens = static_cast<double>(int64_t{1} << 50);

// Options shared by `eval` and `compare`.
void describe_test_data(OptionVisitor& v, EvalOptions& o) {
  v.option(
      "--data", o.data,
      "documents (a folder, a file, a .list), pairs (a prefix, a .tsv) or images (class folders, a "
      ".tar, CIFAR, IDX); default: the run's");
  v.option("--split", o.split, "split of the run's data", one_of({"train", "valid", "test"}));
  v.option("--tokenizer", o.tokenizer, kTokenizerHelp);
  v.option("--cache", o.cache, kCacheHelp);
  v.option("--rows", o.rows, "language models: documents processed in parallel", between(1, 65536));
  v.option("--tokens", o.tokens,
           "language models: score up to N tokens, the beginning of every document; 0 = all",
           between(0, kManyTokens));
  describe_decoding(v, o.decoding, "sentences or images per batch");
  v.option("--loops", o.loops,
           "images: loops or levels to apply instead of the trained number; 0 = as trained",
           between(0, 100000));
  describe(v, o.load);
  describe(v, o.compute);
  v.flag("--json", o.json, kJsonHelp);
}

}  // namespace

void describe_decoding(OptionVisitor& v, DecodingOptions& o, const char* batch) {
  v.option("--beam", o.beam, "beam size; 1 = greedy", between(1, 1000));
  v.option("--length-penalty", o.length_penalty,
           "exponent x of the score log p / length^x that ranks hypotheses", between(0, 10));
  v.option("--max-length", o.max_length, "maximum tokens per translation", between(1, 1 << 20));
  v.option("--batch", o.batch, batch, between(1, 65536));
  v.option("--precision", o.precision, "precision of the linear layers' weights",
           one_of({"fp32", "bf16", "int8"}));
  v.option("--signals", o.signals,
           "RingFormer: level signals folded into the weights or kept apart",
           one_of({"folded", "apart"}));
}

void describe(OptionVisitor& v, TrainOptions& o) {
  v.argument("what", o.what,
             "data: a text file, a folder of texts, two parallel files, or a folder of class "
             "folders; a recipe ('rondo recipes'), a TOML file, or a row of a table "
             "(ringformer/table4:static); or a run folder to resume");
  v.option("--recipe", o.recipe, "with data: use this recipe instead of the task's small one");
  v.option("--tokenizer", o.tokenizer,
           "with data: vocabulary size of a tokenizer to train (for example 4096), \"bytes\", or a "
           "SentencePiece model");
  v.flag("--mini", o.mini, "use the recipe's mini size, for a few CPU cores");
  v.option("--data", o.data, kNamedDataHelp);
  v.option("--set", o.set, "override a key, for example data.train=FOLDER");
  v.option("-o,--output", o.run, "run folder (default: runs/<name of the data or recipe>)");
  v.option("--cache", o.cache, kCacheHelp);
  v.flag("--dry-run", o.dry_run,
         "report parameters, memory, steps and time, measured over a few real steps; creates no "
         "run folder");
  v.flag("--json", o.json, "with --dry-run: print JSON");
  v.flag("--show-config", o.show_config,
         "print the full configuration with the file and line that set each key");
  v.option("--workers", o.workers,
           "number of processes on this machine (0, 1: one); on several machines, launch 'rondo "
           "train' with torchrun, srun or mpirun (docs/scale.md)",
           between(0, 1024));
  v.option("--group-file", o.group_file,
           "several processes: rendezvous file, in a folder that all of them share");
  v.option("--group-address", o.group_address,
           "with --group-file: address of the machine of rank 0 (default: 127.0.0.1)");
  v.option("--group-secret-file", o.group_secret,
           "several machines: file with a secret shared by all processes");
  v.option("--group-timeout", o.group_timeout, "seconds to wait for another process",
           between(1, 86400));
  describe_kernels(v, o.kernels);
}

void describe(OptionVisitor& v, NewOptions& o) {
  v.argument("name", o.name, "name of the recipe; writes NAME.toml");
  v.option("--recipe", o.recipe, "recipe to start from ('rondo recipes')");
  v.flag("--mini", o.mini, "start from its mini size");
}

void describe(OptionVisitor& v, RunsOptions& o) {
  v.argument("folder", o.folder, "folder to search", false);
  v.flag("--json", o.json, kJsonHelp);
}

void describe(OptionVisitor& v, ExportOptions& o) {
  v.argument("run", o.run, kRunHelp);
  v.required("-o,--output", o.output, "folder to write; must not exist, or be empty");
  v.option("--precision", o.precision, "precision of the stored weights; bf16 halves the size",
           one_of({"fp32", "bf16"}));
  describe(v, o.load);
}

void describe(OptionVisitor& v, EvalOptions& o) {
  v.argument("run", o.run, kRunHelp);
  describe_test_data(v, o);
  v.output("--items", o.items,
           "write the result of every item (image, sentence, block of 1,024 tokens) to this "
           "file, for comparisons");
  v.option("--state-in", o.state_in, "state file to start the (single) document from");
  v.output("--state-out", o.state_out, "write the state after the last document to this file");
  v.flag("--without-state", o.without_state,
         "recurrent models: replace the states with zeros, to measure their contribution");
  v.option("--tokenize", o.tokenize, "translation: how BLEU tokenizes",
           one_of({"13a", "none", "char"}));
  v.flag("--agreement", o.agreement,
         "translation: instead of a score, print the share of sentences for which fast decoding "
         "with --precision generates exactly the output of the training network (both greedy); "
         "below 100 %, rounding changed a token");
  v.flag("-b,--score-only", o.score_only, "translation: print only the BLEU score");
}

void describe(OptionVisitor& v, CompareOptions& o) {
  v.argument("a", o.eval.run, kRunHelp);
  v.argument("b", o.other, "model to compare with, for the same task");
  describe_test_data(v, o.eval);
}

void describe(OptionVisitor& v, GenerateOptions& o) {
  v.argument("run", o.run, kRunHelp);
  v.text("--prompt", o.prompt, "text to continue");
  v.option("--prompt-file", o.prompt_file, "file to continue, of any length (- = stdin)");
  v.option("--state-in", o.state_in, "state file to continue from");
  v.output("--state-out", o.state_out, "write the state after the last token to this file");
  v.option("--tokenizer", o.tokenizer, kTokenizerHelp);
  v.option("-n,--tokens", o.tokens, "tokens to generate", between(0, kManyTokens));
  v.option("--temperature", o.temperature, "sampling temperature; 0 = greedy", between(0, 100));
  v.option("--top-k", o.top_k, "sample from the k most likely tokens; 0 = all",
           between(0, 1 << 24));
  v.option("--top-p", o.top_p, "sample from the most likely tokens up to this total probability",
           between(0, 1));
  v.option("--repetition-penalty", o.repetition_penalty, "above 1: penalize recent tokens",
           between(0.01, 100));
  v.option("--repetition-window", o.repetition_window, "number of tokens that count as recent",
           between(1, kMaxRepetitionWindow));
  v.option("--seed", o.seed, "sampling seed");
  v.option("--precision", o.precision, "precision of the linear layers' weights",
           one_of({"fp32", "bf16", "int8"}));
  describe(v, o.load);
  describe(v, o.compute);
  v.flag("--stream", o.stream, "print each token as it is generated");
  v.flag("--stats", o.stats, "report speed and memory on stderr");
}

void describe(OptionVisitor& v, StateReadOptions& o) {
  v.argument("run", o.run, kRunHelp);
  v.argument("document", o.document, "text file (- = stdin)");
  v.option("--state-in", o.state, "state file to continue from");
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
  v.option("--vocab", o.vocabulary, "vocabulary size", between(256, 65536));
  v.option("--type", o.type, "SentencePiece model type", one_of({"bpe", "unigram"}));
}

void describe(OptionVisitor& v, TranslateOptions& o) {
  v.argument("run", o.run, kRunHelp);
  v.option("--input", o.input, "text file (plain, .gz, .zst); - = stdin");
  v.option("--tokenizer", o.tokenizer, "SentencePiece model (default: the run's)");
  describe_decoding(v, o.decoding, "sentences per batch");
  v.option("--n-best", o.n_best, "translations per line; above 1, in the format of Moses",
           between(1, 1000));
  v.option("--buffer", o.buffer, "maximum lines to read ahead, for batching by length",
           between(1, 1 << 20));
  describe(v, o.load);
  describe(v, o.compute);
  v.flag("--json", o.json, "print one JSON object per line");
}

void describe(OptionVisitor& v, AverageOptions& o) {
  v.argument("models", o.models, "a run folder, or several model files");
  v.output("-o,--output", o.output, "model file to write", true);
  v.option("--last", o.last, "with a run: average the newest N checkpoints; 0 = all kept",
           between(0, 1000));
  describe(v, o.load);
}

void describe(OptionVisitor& v, ClassifyOptions& o) {
  v.argument("run", o.run, kRunHelp);
  v.argument("paths", o.paths, "images (.jpg, .jpeg, .png) and folders of them", false);
  v.option("--list", o.list, "file with more image paths, one per line (- = stdin)");
  v.option("--top", o.top, "number of most likely classes to print", between(1, 1 << 24));
  v.option("--batch", o.batch, "images per batch", between(1, 65536));
  v.option("--loops", o.loops,
           "loops or levels to apply instead of the trained number; 0 = as trained",
           between(0, 100000));
  v.option("--classes", o.classes,
           "class names, one per line (name, or id TAB name); default: the model's");
  v.option("--set", o.set,
           "image preprocessing, for example augment.crop_ratio=1; default: the run's");
  describe(v, o.load);
  describe(v, o.compute);
  v.flag("--json", o.json, "print one JSON object per line");
}

void describe(OptionVisitor& v, ScoreOptions& o) {
  v.argument("hypotheses", o.hypotheses,
             "translations, one per line (- = stdin; plain, .gz or .zst)");
  v.argument("references", o.references, "reference translations, line by line; one or more files");
  v.option("--against", o.against,
           "compare with these translations: difference and paired bootstrap test");
  v.option("--metrics", o.metrics, "bleu, chrf or both, separated by a comma");
  v.option("--tokenize", o.tokenize, "how BLEU tokenizes; none = the text is already tokenized",
           one_of({"13a", "none", "char"}));
  v.option("--smooth", o.smooth, "BLEU: smoothing where an n-gram order has no match",
           one_of({"exp", "none", "floor", "add-k"}));
  v.flag("--effective-order", o.effective_order,
         "BLEU of single sentences: skip orders that have no n-grams");
  v.flag("--lowercase", o.lowercase, "BLEU: ignore case (sacreBLEU's -lc)");
  v.flag("--chrf-lowercase", o.chrf_lowercase, "chrF: ignore case");
  v.option("--chrf-word-order", o.chrf_word_order, "chrF: word n-gram order; 2 = chrF++",
           between(0, 2));
  v.flag("--confidence", o.confidence, "print 95 % intervals, by bootstrap resampling");
  v.option("--samples", o.samples, "bootstrap samples for --confidence and --against",
           between(1, 1'000'000));
  v.option("--seed", o.seed, "seed of the bootstrap", at_least(0));
  v.flag("-b,--score-only", o.score_only, "print only the numbers");
  v.flag("--json", o.json, kJsonHelp);
}

}  // namespace rondo::cli
