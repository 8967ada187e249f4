// Trained models given on the command line, torch-free: a run folder, an exported folder
// (config/exported_model.h), a model file or a checkpoint, with its configuration and, if known,
// the experiment it came from.
#pragma once

#include <optional>

#include "rondo/config/class_names.h"
#include "rondo/config/train_config.h"

namespace rondo {

// Paths in a run folder: the best model, the run's copies of its tokenizers, and its class names.
std::string best_model_path(const std::string& run);
std::string kept_tokenizer_path(const std::string& run, const std::string& side);  // "joint", ...
std::string kept_classes_path(const std::string& run);

// Metadata keys of an image network: its class names, in the format of dump_class_names(), and its
// image preprocessing ([augment], as TOML).
constexpr const char* kClassNamesKey = "rondo.classes";
constexpr const char* kAugmentKey = "rondo.augment";
// Both, for save_model(). Empty names are omitted.
std::map<std::string, std::string> image_metadata(const AugmentConfig& augment,
                                                  const ClassNames& names);

// The experiment of a run folder. Throws Error{bad_input} if `path` is not a run folder.
RunConfig read_run_folder(const std::string& path);
bool is_run_folder(const std::string& path);

// The checkpoints of a run folder, newest first, and the step in a checkpoint's file name.
std::vector<std::string> checkpoint_files(const std::string& run);
int64_t checkpoint_step(const std::string& file);
// The value of the metadata key "format" of a checkpoint.
constexpr const char* kCheckpointFormat = "rondo-checkpoint-1";

// The weights file of `given`: the best model of a run, otherwise its newest checkpoint; the model
// of an exported folder; a file itself. "" if a folder has neither.
std::string weights_file(const std::string& given);

struct TrainedFiles {
  std::string weights;  // a model file or a checkpoint
  ModelConfig model;
  // Known for run folders and files inside them, and, without data paths, for exported and averaged
  // models. Its tokenizers are the copies in the folder or file, so that it can be moved.
  std::optional<RunConfig> run;
  // Of an image network: from the run, otherwise from the file. If unknown: no names, and
  // ImageNet's preprocessing.
  ClassNames classes;
  AugmentConfig augment;
};

// `given`: a run folder, an exported folder, a model file or a checkpoint. For a run without a best
// model, uses the newest checkpoint and logs that once. Throws Error{bad_input} if it is none of
// these, or a run that has not saved anything yet.
TrainedFiles find_trained(const std::string& given);

// Throws Error{bad_input} unless `trained` has this task ("lm", "translation", "image").
void require_task(const TrainedFiles& trained, const std::string& given, const std::string& task);

// The same network with `loops` loops (recursive) or levels (ring, universal). Throws Error{usage}
// if the levels of the network are all distinct; `given` names it.
ModelConfig with_loops(ModelConfig config, int64_t loops, const std::string& given);

// The tokenizers of an experiment by side ("text", "joint", "source", "target"), each with its
// configuration field; and whether such a value is a file.
std::vector<std::pair<std::string, std::string*>> tokenizer_fields(RunConfig& config);
bool is_tokenizer_file(const std::string& tokenizer);

// The data of a run for `split` ("train", "valid" or "test"; for a run without test data its
// validation data, with a note). Throws Error{usage} if it has none; `given` names the run or model
// file.
std::string run_data(const std::optional<RunConfig>& run, const std::string& given,
                     const std::string& task, const std::string& split);

// Copies the tokenizers of `config` into the run folder, unless already there.
void keep_tokenizers(const std::string& run, const RunConfig& config);
// Writes the class names of an image run into its folder.
void keep_class_names(const std::string& run, const ClassNames& names);

}  // namespace rondo
