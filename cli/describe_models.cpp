// Options of the verbs for models, configurations, data, tables and this machine.
#include "cli/describe_common.h"
#include "rondo/base/memory_limit.h"

namespace rondo::cli {
namespace {

constexpr const char* kModelHelp =
    "a name listed by 'rondo models', a TOML configuration, a run folder, an exported folder, or a "
    "model file (.safetensors)";
constexpr const char* kSetHelp = "override a configuration key, for example model.width=256";

}  // namespace

void describe_kernels(OptionVisitor& v, std::string& kernels) {
  v.option("--kernels", kernels,
           "fused: Rondo's own; reference: the plain operations they must agree with, slower",
           one_of({"fused", "reference"}));
}

void describe(OptionVisitor& v, ComputeOptions& o) {
  v.option("--threads", o.threads, "CPU threads; 0 = one per core", between(0, kMaxThreads));
  describe_kernels(v, o.kernels);
}

void describe(OptionVisitor& v, LoadOptions& o) {
  v.flag("--no-verify", o.verify, "do not verify the checksums of model and state files", false);
}

void describe(OptionVisitor& v, ModelsOptions& o) {
  v.option("--task", o.task,
           "only models for this task (translation, image, lm) or of this kind (encoder-decoder, "
           "vision, pyramid, language-model)",
           one_of({"translation", "image", "lm", "encoder-decoder", "vision", "pyramid",
                   "language-model"}));
  v.flag("--json", o.json, kJsonHelp);
}

void describe(OptionVisitor& v, InfoOptions& o) {
  v.argument("model", o.model, kModelHelp);
  v.flag("--json", o.json, kJsonHelp);
  v.flag("--toml", o.toml, "print the full configuration instead");
  v.option("--image", o.image, "image side in pixels", between(1, 65536));
  v.option("--classes", o.classes, "number of classes", between(1, 1 << 24));
  v.option("--vocab", o.vocabulary, "vocabulary size", between(1, 1 << 24));
  v.option("--tokens", o.tokens, "sequence length for which multiply-adds are counted",
           between(1, 1 << 24));
  v.option("--count", o.count,
           "what counts as an operation: macs (multiply-adds); norms (SReT's "
           "rule: 5 more per normalized element); authors (the RingFormer authors' rule: "
           "also 6 per GELU element, 1 per element added or divided, and forming each "
           "signal's matrix)",
           one_of({"macs", "norms", "authors"}));
  v.option("--set", o.set, kSetHelp);
}

void describe(OptionVisitor& v, ForwardOptions& o) {
  v.argument("model", o.model, kModelHelp);
  v.option("--weights", o.weights,
           "weights (safetensors); default: the model's own, or random ones from --seed");
  v.required("--input", o.input,
             "safetensors with images | source, target | tokens[, reset]; add labels for a loss");
  v.output("-o,--output", o.output, "safetensors to write: logits, state.*, probe.*, loss", true);
  v.option("--state-in", o.state_in, "state file to continue from");
  v.output("--state-out", o.state_out, "write the final state to this file");
  v.option("--probe", o.probes,
           "also write the activations whose names match this pattern (wildcards: * and ?)");
  v.flag("--train", o.train, "training mode: dropout, batch statistics, random permutations");
  v.flag("--gradients", o.gradients,
         "with labels: write gradient.<parameter> (implied by --train)");
  v.option("--seed", o.seed, "seed for random weights, dropout and permutations");
  describe(v, o.load);
  describe(v, o.compute);
  v.option("--set", o.set, kSetHelp);
}

void describe(OptionVisitor& v, ImportOptions& o) {
  v.required("--from", o.program,
             "program the weights are from: ringformer, sret, meliad, deit or timm-vit");
  v.argument("file", o.file, "weights to convert (safetensors)");
  v.required("--config", o.config, "the model: a name or a TOML configuration");
  v.output("-o,--output", o.output, "model file to write", true);
  v.flag("--all", o.all, "list every tensor that does not fit, not only the first five");
  v.option("--classes", o.classes,
           "images: class names to store in the model file, one per line (name, or id TAB name)");
  v.option("--set", o.set, kSetHelp);
}

void describe(OptionVisitor& v, DoctorOptions& o) { v.flag("--json", o.json, kJsonHelp); }

void describe(OptionVisitor& v, ConfigOptions& o) {
  v.required(
      "--kind", o.kind,
      "encoder-decoder, vision, pyramid or language-model; or a task: translation, image, lm");
  v.option("--section", o.section,
           "model, data, train, optimizer or schedule; images: augment, distill");
  v.flag("--json", o.json, kJsonHelp);
}

void describe(OptionVisitor& v, BenchOptions& o) {
  v.argument("names", o.names, "cases to measure (see --list); default: a quick selection", false);
  v.flag("--all", o.all, "measure every case except step-time, which is slow");
  v.flag("--list", o.list, "list the cases");
  v.option("--data", o.data,
           "instead, measure whether data loading keeps up with the model of this training "
           "configuration");
  v.flag("--mini", o.mini, "with --data: use the recipe's mini size");
  v.option("--set", o.set, "with --data: override a key, for example data.train=FOLDER");
  v.option("--cache", o.cache, "with --data: cache folder for tokenized text; default: the user's");
  v.option("--rounds", o.rounds, "undisturbed rounds to measure; medians are taken over them",
           between(5, 1000));
  describe(v, o.compute);
  v.option("--peers", o.peers, "folder of the peer scripts; default: bench/peers of the sources");
  v.option("--python", o.python, "Python interpreter for the peers; default: the system's");
  v.flag("--no-peers", o.no_peers, "do not compare with PyTorch");
  v.flag("--processor-time", o.processor_time,
         "measure CPU time instead of wall time, for machines that are never idle");
  v.flag("--json", o.json, kJsonHelp);
  v.hidden("--memory-of", o.memory_of);
}

void describe(OptionVisitor& v, DataCheckOptions& o) {
  v.argument("paths", o.paths,
             "text (a file, a folder, a .list), two parallel files or a .tsv, or images (a folder "
             "of class folders, a .tar of one, CIFAR binaries, IDX files); optionally followed by "
             "a split (cifar10/train) and a part (#:-1000)");
  v.option("--threads", o.threads, "CPU threads; 0 = one per core", between(0, kMaxThreads));
  v.flag("--json", o.json, kJsonHelp);
}

void describe(OptionVisitor& v, DataPreviewOptions& o) {
  v.argument("config", o.config, "a recipe, a row of a table, or a TOML file");
  v.flag("--mini", o.mini, "use the recipe's mini size");
  v.option("--data", o.folders, kNamedDataHelp);
  v.output("-o,--output", o.output, "PNG file to write", true);
  v.option("--set", o.set, "override a key, for example data.train=FOLDER");
  v.option("--rows", o.rows, "rows of images; each row is mixed as one batch", between(1, 1000));
  v.option("--columns", o.columns, "images per row", between(1, 1000));
  v.option("--split", o.split, "split to show; valid and test are prepared as for evaluation",
           one_of({"train", "valid", "test"}));
  v.flag("--original", o.original, "show the stored images above each row");
}

void describe(OptionVisitor& v, DataGetOptions& o) {
  v.argument("name", o.name, "a name from recipes/data.toml, for example fashion-mnist");
}

void describe(OptionVisitor& v, TableRunVerb& verb) {
  TableRunOptions& o = verb.run;
  v.argument("table", o.table, "a name listed by 'rondo table list', or a TOML file");
  v.option("-o,--output", o.output, "folder for the runs (default: runs/<table>)");
  v.flag("--mini", o.mini, "use the mini size, for a few CPU cores");
  v.option("--data", o.data, "location of a data set: NAME=DIR");
  v.option("--seeds", o.seeds, "runs per row, with seeds 1, 2, …", between(1, 1000));
  v.option("--jobs", o.jobs, "runs in parallel, each with a share of the cores", between(1, 256));
  v.list("--rows", o.rows, "only these rows and the rows they build on");
  v.list("--columns", o.columns, "only these columns");
  v.option("--set", o.set, "override a key in every row, for example train.steps=500");
  v.option("--cache", o.cache, kCacheHelp);
  v.flag("--dry-run", verb.dry_run, "estimate time and memory of every row without training");
}

void describe(OptionVisitor& v, TableShowOptions& o) {
  v.argument("folders", o.folders, "folders from 'rondo table run' or 'rondo table record'");
  v.flag("--markdown", o.markdown, "print Markdown; for several tables, their claims come first");
  v.flag("--json", o.json, kJsonHelp);
  v.flag("--html", o.html, "print a web page with bars and learning curves");
  v.text("--pages", o.pages, "with --markdown: folder for the web page of each table, to link to");
  v.output("-o,--output", o.output, "file to write instead of standard output");
}

void describe(OptionVisitor& v, TableRecordOptions& o) {
  v.argument("folder", o.folder, "folder from 'rondo table run'");
  v.required("-o,--output", o.output, "folder for the record; an existing record is extended");
}

void describe(OptionVisitor& v, HelpOptions& o) {
  v.argument("verb", o.verb, "a verb, for example train or data check", false);
}

void describe(OptionVisitor& v, CompletionOptions& o) {
  v.argument("shell", o.shell, "bash, zsh or fish");
}

void describe(OptionVisitor& v, ManOptions& o) {
  v.argument("folder", o.folder, "folder for rondo.1, rondo-train.1 and so on");
}

void describe(OptionVisitor& v, RecipesOptions& o) { v.flag("--json", o.json, kJsonHelp); }

}  // namespace rondo::cli
