// What a user may say about the data of an experiment, torch-free: [data], by task, and [distill].
#pragma once

#include "rondo/base/config.h"
#include "rondo/base/memory_limit.h"

namespace rondo {

// Documents for language models.
struct TextConfig {
  std::string train;
  std::string valid;
  std::string test;
  std::string tokenizer = "bytes";
  int64_t divide = 0;
};

template <class V>
void describe(V& v, TextConfig& c) {
  v.field("train", c.train,
          "documents to learn from: a folder, a file, or a .list of files; may end in a part: "
          "#:-5% (without the last 5 % of the text), #-3: (the last 3 documents), #:1000000B");
  v.field("valid", c.valid, "documents to evaluate on while training");
  v.field("test", c.test, "documents for 'rondo eval'");
  v.field(
      "tokenizer", c.tokenizer,
      "\"bytes\", a SentencePiece model, or \"bpe:4096\": one of so many pieces is learned from "
      "the training data first");
  v.field("divide", c.divide,
          "training documents longer than this many bytes are divided at ends of lines, so that "
          "the rows of a batch read different text; 0 = never",
          at_least(0));
}

// Sentence pairs for translation.
struct PairConfig {
  std::string train;
  std::string valid;
  std::string test;
  std::string source = "de";
  std::string target = "en";
  std::string tokenizer;
  std::string source_tokenizer;
  std::string target_tokenizer;
  int64_t batch_tokens = 4096;
  int64_t max_tokens = 128;
  bool cut = false;

  // The tokenizer of each side: its own, or the joint one.
  const std::string& tokenizer_of_source() const {
    return source_tokenizer.empty() ? tokenizer : source_tokenizer;
  }
  const std::string& tokenizer_of_target() const {
    return target_tokenizer.empty() ? tokenizer : target_tokenizer;
  }
};

template <class V>
void describe(V& v, PairConfig& c) {
  v.field("train", c.train,
          "pairs to learn from: PREFIX of PREFIX.de and PREFIX.en, two files joined by a comma, or "
          "a .tsv; plain, .gz or .zst; may end in a part: #:-2000 (without the last 2,000 lines)");
  v.field("valid", c.valid, "pairs to evaluate on while training");
  v.field("test", c.test, "pairs for 'rondo eval'");
  v.field("source", c.source, "what the source file's name ends in after the prefix");
  v.field("target", c.target, "what the target file's name ends in after the prefix");
  v.field(
      "tokenizer", c.tokenizer,
      "for both sides: \"bytes\", a SentencePiece model, or \"bpe:8000\": one of so many pieces is "
      "learned from both sides of the training data first");
  v.field("source_tokenizer", c.source_tokenizer, "for the source alone");
  v.field("target_tokenizer", c.target_tokenizer, "for the target alone");
  v.field("batch_tokens", c.batch_tokens,
          "at most so many tokens of a batch on either side, padding included",
          between(1, 1 << 24));
  v.field("max_tokens", c.max_tokens, "longer sentences are left out of training, or cut",
          between(1, 1 << 20));
  v.field("cut", c.cut, "cut sentences that are too long instead of leaving them out");
}

// Labeled images for classification.
struct ImageDataConfig {
  std::string train;
  std::string valid;
  std::string test;
  bool strict = false;
  int64_t threads = 0;
};

template <class V>
void describe(V& v, ImageDataConfig& c) {
  v.field("train", c.train,
          "images to learn from: a folder of class folders, a .tar of one, CIFAR binaries or IDX "
          "files; a path may go on with a split (cifar10/train) and end in a part (#:-1000, "
          "#:-10%/class)");
  v.field("valid", c.valid, "images to evaluate on while training");
  v.field("test", c.test, "images for 'rondo eval'");
  v.field("strict", c.strict, "stop at an image that cannot be read instead of passing it over");
  v.field("threads", c.threads, "threads that decode and augment ahead; 0 = one per core",
          between(0, kMaxThreads));
}

// A teacher whose answers are learned besides or instead of the labels.
struct DistillConfig {
  std::string teacher;
  std::string kind = "soft";
};

template <class V>
void describe(V& v, DistillConfig& c) {
  v.field("teacher", c.teacher, "a run or model file of the same classes; empty = no teacher");
  v.field("kind", c.kind,
          "soft: the teacher's distribution instead of the labels (SReT); hard: half the labels, "
          "half the teacher's first choice (DeiT)",
          one_of({"soft", "hard"}));
}

}  // namespace rondo
