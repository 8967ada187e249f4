// Data configuration of an experiment, torch-free: [data], by task, and [distill].
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
          "training documents: a folder, a file, or a .list of files; may end in a part: #:-5% "
          "(all but the last 5 % of the text), #-3: (the last 3 documents), #:1000000B");
  v.field("valid", c.valid, "documents to evaluate on during training");
  v.field("test", c.test, "documents for 'rondo eval'");
  v.field("tokenizer", c.tokenizer,
          "\"bytes\", a SentencePiece model, or \"bpe:4096\": first train one with that many "
          "pieces on the training data");
  v.field("divide", c.divide,
          "split training documents longer than this many bytes at line ends, so that the rows of "
          "a batch contain different text; 0 = never",
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

  // The tokenizer of each side: its own, otherwise the joint one.
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
          "training pairs: PREFIX of PREFIX.de and PREFIX.en, two files separated by a comma, or a "
          ".tsv; plain, .gz or .zst; may end in a part: #:-2000 (all but the last 2,000 lines)");
  v.field("valid", c.valid, "pairs to evaluate on during training");
  v.field("test", c.test, "pairs for 'rondo eval'");
  v.field("source", c.source, "file name extension of the source language, after the prefix");
  v.field("target", c.target, "file name extension of the target language, after the prefix");
  v.field("tokenizer", c.tokenizer,
          "for both sides: \"bytes\", a SentencePiece model, or \"bpe:8000\": first train one with "
          "that many pieces on both sides of the training data");
  v.field("source_tokenizer", c.source_tokenizer, "for the source only");
  v.field("target_tokenizer", c.target_tokenizer, "for the target only");
  v.field("batch_tokens", c.batch_tokens,
          "maximum tokens per batch on either side, including padding", between(1, 1 << 24));
  v.field("max_tokens", c.max_tokens, "longer sentences are skipped in training, or truncated",
          between(1, 1 << 20));
  v.field("cut", c.cut, "truncate sentences that are too long instead of skipping them");
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
          "training images: a folder of class folders, a .tar of one, CIFAR binaries or IDX files; "
          "a path may name a split (cifar10/train) and end in a part (#:-1000, #:-10%/class)");
  v.field("valid", c.valid, "images to evaluate on during training");
  v.field("test", c.test, "images for 'rondo eval'");
  v.field("strict", c.strict, "fail on an image that cannot be read instead of skipping it");
  v.field("threads", c.threads, "prefetch threads for decoding and augmentation; 0 = one per core",
          between(0, kMaxThreads));
}

// A teacher whose predictions are trained on in addition to, or instead of, the labels.
struct DistillConfig {
  std::string teacher;
  std::string kind = "soft";
};

template <class V>
void describe(V& v, DistillConfig& c) {
  v.field("teacher", c.teacher, "a run or model file with the same classes; empty = no teacher");
  v.field("kind", c.kind,
          "soft: train on the teacher's distribution instead of the labels (SReT); hard: half "
          "labels, half the teacher's top prediction (DeiT)",
          one_of({"soft", "hard"}));
}

}  // namespace rondo
