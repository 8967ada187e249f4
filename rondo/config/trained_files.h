// What a user means by a trained model on the command line, torch-free: a run folder, an exported
// folder (config/exported_model.h), a model file or a checkpoint, with its configuration and, where
// it is known, the experiment it came from.
#pragma once

#include <optional>

#include "rondo/config/class_names.h"
#include "rondo/config/train_config.h"

namespace rondo {

// Where a run folder keeps its best model, and its own copies of the tokenizers it was made with.
std::string best_model_path(const std::string& run);
std::string kept_tokenizer_path(const std::string& run, const std::string& side);  // "joint", ...
std::string kept_classes_path(const std::string& run);

// Where the file of an image network keeps the names of its classes, as dump_class_names() writes
// them, and how images are prepared for it ([augment], as TOML).
constexpr const char* kClassNamesKey = "rondo.classes";
constexpr const char* kAugmentKey = "rondo.augment";
// Both, for save_model(). No names are written if there are none.
std::map<std::string, std::string> image_metadata(const AugmentConfig& augment,
                                                  const ClassNames& names);

// The experiment a run folder was made by. Error{bad_input} if it is none.
RunConfig read_run_folder(const std::string& path);
bool is_run_folder(const std::string& path);

// The checkpoints of a run folder, newest first, and the step that a checkpoint's name says.
std::vector<std::string> checkpoint_files(const std::string& run);
int64_t checkpoint_step(const std::string& file);
// What the metadata key "format" of a checkpoint says.
constexpr const char* kCheckpointFormat = "rondo-checkpoint-1";

// Where the weights of `given` are: of a run its best model or else its newest checkpoint, of an
// exported folder its model; any file is its own. "" if a folder has neither.
std::string weights_file(const std::string& given);

struct TrainedFiles {
  std::string weights;  // a model file or a checkpoint
  ModelConfig model;
  // Of a run folder, and of files in one; of a model that was exported or averaged without the
  // names of its data. Its tokenizers are the copies that the folder or file holds, so that it can
  // be moved.
  std::optional<RunConfig> run;
  // Of an image network: the run's, else the file's. No names and ImageNet's way where neither
  // knows.
  ClassNames classes;
  AugmentConfig augment;
};

// `given`: a run folder, an exported folder, a model file or a checkpoint. A run without a best
// model is used as its newest checkpoint has it, which the log says once. Error{bad_input} if it is
// none of these, or a run that has saved nothing yet.
TrainedFiles find_trained(const std::string& given);

// Error{bad_input} unless `trained` is of this task ("lm", "translation", "image").
void require_task(const TrainedFiles& trained, const std::string& given, const std::string& task);

// The same network with so many loops (recursive networks) or levels (ring and universal ones).
// Error{usage} if the levels of the network are all its own; `given` names it.
ModelConfig with_loops(ModelConfig config, int64_t loops, const std::string& given);

// The tokenizers of an experiment by the side they are for ("text", "joint", "source", "target"),
// each with the field that names it, and whether that is a file.
std::vector<std::pair<std::string, std::string*>> tokenizer_fields(RunConfig& config);
bool is_tokenizer_file(const std::string& tokenizer);

// The data of a run: its `split` ("train", "valid" or "test"). Error{usage} if it names none;
// `given` names the run or model file.
std::string run_data(const std::optional<RunConfig>& run, const std::string& given,
                     const std::string& task, const std::string& split);

// Copies the tokenizers of `config` into the run folder, once.
void keep_tokenizers(const std::string& run, const RunConfig& config);
// Writes the names of an image run's classes into its folder.
void keep_class_names(const std::string& run, const ClassNames& names);

}  // namespace rondo
