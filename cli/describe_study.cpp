// Options of rondo study, by kind, and of rondo report.
#include "cli/describe_common.h"
#include "cli/study_options.h"

namespace rondo::cli {
namespace {

constexpr const char* kRunsHelp = "run folders, or model files (.safetensors)";

// Options shared by the kinds that read data.
void describe_study_data(OptionVisitor& v, StudyOptions& o) {
  v.option("--data", o.data,
           "documents (a folder, a file, a .list), pairs (a prefix, a .tsv) or images (class "
           "folders, a .tar, CIFAR, IDX); default: the run's");
  v.option("--split", o.split, "split of the run's data", one_of({"train", "valid", "test"}));
  v.option("--tokenizer", o.tokenizer, kTokenizerHelp);
  v.option("--cache", o.cache, kCacheHelp);
  describe(v, o.load);
  describe(v, o.compute);
}

void describe_items(OptionVisitor& v, StudyOptions& o) {
  v.option("--items", o.items,
           "number of sentence pairs, images or document segments to read; 0 = the study's default",
           between(0, 1 << 30));
}

void describe_activations(OptionVisitor& v, StudyOptions& o) {
  v.option("--input", o.inputs,
           "image file to look at, or sentence to translate, instead of --data; repeatable");
  v.list("--levels", o.levels, "images: levels to show, for example 1,3 or 1.2,2.4 (default: all)");
  v.option("--channels", o.channels, "images: channels to show per level", between(1, 64));
}

void describe_landscape(OptionVisitor& v, StudyOptions& o) {
  v.option("--points", o.points, "points per side of the plane, an odd number", between(3, 1001));
  v.option("--radius", o.radius, "extent of the plane, in filter norms", between(0.001, 100));
  v.option("--seed", o.seed, "seed for the directions");
  v.option("--jobs", o.jobs, "processes that share the points", between(1, 256));
  v.hidden("--part", o.part);
}

}  // namespace

// The kind comes first: it determines the other options.
void describe(OptionVisitor& v, StudyOptions& o) {
  v.hidden("--kind", o.kind);
  v.argument("runs", o.runs, kRunsHelp);
  v.output("-o,--output", o.output,
           "page to write (.html), or only its first figure (.svg); default without --json: "
           "KIND.html");
  v.flag("--json", o.json, "print the numbers as JSON");
  if (o.kind == "coefficients" || o.kind == "cost") return;
  describe_study_data(v, o);
  if (o.kind == "state") {
    v.option("--tokens", o.tokens, "read up to N tokens, the beginning of every document",
             between(2, 1 << 30));
    v.option("--excerpt", o.excerpt, "tokens of text to show", between(1, 100000));
    return;
  }
  describe_items(v, o);
  if (o.kind == "activations") describe_activations(v, o);
  if (o.kind == "landscape") describe_landscape(v, o);
  if (o.kind == "cka") {
    v.option("--estimator", o.estimator,
             "tokens: over the tokens of each item, as RingFormer's authors do; items: over the "
             "items of each batch; rows: all tokens as one sample, biased as usually reported; "
             "rows-unbiased: the same with the unbiased estimator; auto: tokens for text, items "
             "for images",
             one_of({"auto", "tokens", "items", "rows", "rows-unbiased"}));
  }
}

void describe(OptionVisitor& v, RunReportOptions& o) {
  v.argument("runs", o.runs, "run folders");
  v.output("-o,--output", o.output, "page to write (default without --json: report.html)");
  v.flag("--json", o.json, "print the numbers as JSON");
}

}  // namespace rondo::cli
