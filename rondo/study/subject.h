// The subject of a study: a trained network and batches of its data. Studies access networks only
// through Network::forward and an Observer; they never copy them.
#pragma once

#include <functional>

#include "rondo/config/trained_files.h"
#include "rondo/data/pair_tokenizers.h"
#include "rondo/image/sources.h"
#include "rondo/model/network.h"
#include "rondo/nn/tensor_file.h"

namespace rondo::study {

// Inputs of one forward pass.
struct Batch {
  NamedTensors inputs;  // for Network::forward
  Tensor labels;        // images [B]; text [B, T], -1 = not scored
  // By stack name ("encoder", "decoder", "stack"): which tokens are not padding, bool [B, T]. A
  // stack without an entry has no padding.
  std::map<std::string, Tensor> real;
  int64_t rows = 0;
};

// An iterator over batches; a single pass.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual bool next(Batch& out) = 0;  // false at the end
};

// Consecutive forward passes over batches: a language model carries its state along.
class Reader {
 public:
  explicit Reader(Network& network) : network_(network) {}
  NamedTensors forward(const Batch& batch, const Scope& scope);

 private:
  Network& network_;
  State state_;
};

struct SubjectOptions {
  std::string data;  // "" = the run's `split`
  std::string split = "test";
  std::string tokenizer;  // "" = the run's
  std::string cache_folder;
  int64_t items = 0;      // sentence pairs, images, or segments of documents; 0 = all
  int64_t rows = 32;      // images or segments per batch
  int64_t tokens = 4096;  // of sentence pairs per batch
  Verify verify = Verify::checksum;
};

// A trained model with its data. Networks are in evaluation mode.
struct Subject {
  std::string name;  // as given
  std::string task;  // "lm", "translation", "image"
  ModelConfig config;
  std::optional<RunConfig> run;
  std::shared_ptr<Network> network;
  PairTokenizers tokenizers;  // both the same for a language model
  AugmentConfig augment;      // image networks
  ClassNames classes;
};

// A run folder or model file. Error{bad_input} if it is neither.
Subject load_subject(const std::string& given, const SubjectOptions& options);

// The data to study it on. Error{usage} if neither options nor run specify any, Error{bad_input} if
// it is empty. `subject` must outlive the batches.
std::unique_ptr<Batches> open_batches(const Subject& subject, const SubjectOptions& options);

// Error{bad_input} unless both process the same items as the same tokens: one task and, for text,
// one vocabulary.
void require_same_data(const Subject& a, const Subject& b);

// The levels of a network in order of depth, by group: "encoder" and "decoder", or one group
// "levels", with the common prefix of their activation names ("stack.level.3").
struct LevelGroup {
  std::string name;
  std::vector<std::string> scopes;
  std::vector<std::string> labels;  // "1", "2", …; in pyramids "1.1", stage and level
  std::vector<std::string> stacks;  // the stack of each level
};
std::vector<LevelGroup> level_groups(const Network& network);

}  // namespace rondo::study
