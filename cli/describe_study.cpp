// Options of rondo study, by kind, and of rondo report.
#include "cli/describe_common.h"
#include "cli/study_options.h"

namespace rondo::cli {
namespace {

constexpr const char* kRunsHelp = "run folders, or model files (.safetensors)";

// What kinds that read data share.
void describe_study_data(OptionVisitor& v, StudyOptions& o) {
  v.option("--data", o.data,
           "documents (a folder, a file, a .list), pairs (a prefix, a .tsv) or images (class "
           "folders, a .tar, CIFAR, IDX); default: the run's");
  v.option("--split", o.split, "which of the run's data", one_of({"train", "valid", "test"}));
  v.option("--tokenizer", o.tokenizer, kTokenizerHelp);
  v.option("--cache", o.cache, kCacheHelp);
  describe(v, o.load);
  describe(v, o.compute);
}

void describe_items(OptionVisitor& v, StudyOptions& o) {
  v.option("--items", o.items,
           "read so many sentence pairs, images or segments of documents; 0 = the study's usual "
           "number",
           between(0, 1 << 30));
}

void describe_activations(OptionVisitor& v, StudyOptions& o) {
  v.option("--input", o.inputs,
           "image files to look at, or sentences to translate, instead of data; may be given "
           "several times");
  v.list("--levels", o.levels, "images: levels to show, for example 1,3 or 1.2,2.4 (default: all)");
  v.option("--channels", o.channels, "images: channels shown of each level", between(1, 64));
}

void describe_landscape(OptionVisitor& v, StudyOptions& o) {
  v.option("--points", o.points, "points on a side of the plane", between(2, 1001));
  v.option("--radius", o.radius, "how far it reaches, in norms of a filter", between(0.001, 100));
  v.option("--seed", o.seed, "another seed, other directions");
  v.option("--jobs", o.jobs, "processes that share the points", between(1, 256));
  v.hidden("--part", o.part);
}

}  // namespace

// The kind comes first: it says which others there are.
void describe(OptionVisitor& v, StudyOptions& o) {
  v.hidden("--kind", o.kind);
  v.argument("runs", o.runs, kRunsHelp);
  v.option("-o,--output", o.output,
           "page to write (.html), or its first picture alone (.svg); default without --json: "
           "KIND.html");
  v.flag("--json", o.json, "print the numbers as JSON");
  if (o.kind == "coefficients" || o.kind == "cost") return;
  describe_study_data(v, o);
  if (o.kind == "state") {
    v.option("--tokens", o.tokens, "read so many tokens at most, the beginning of every document",
             between(2, 1 << 30));
    v.option("--excerpt", o.excerpt, "tokens of the text to show", between(1, 100000));
    return;
  }
  describe_items(v, o);
  if (o.kind == "activations") describe_activations(v, o);
  if (o.kind == "landscape") describe_landscape(v, o);
  if (o.kind == "cka") {
    v.option("--estimator", o.estimator,
             "tokens: over the tokens of each item, as RingFormer's authors; items: over the items "
             "of each batch; rows: all tokens as one sample; auto: tokens for text, items for "
             "images",
             one_of({"auto", "tokens", "items", "rows"}));
  }
}

void describe(OptionVisitor& v, RunReportOptions& o) {
  v.argument("runs", o.runs, "run folders");
  v.option("-o,--output", o.output, "page to write (default without --json: report.html)");
  v.flag("--json", o.json, "print the numbers as JSON");
}

}  // namespace rondo::cli
