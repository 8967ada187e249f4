// Models outside their run folder, torch-free: exported folders, and model files that embed their
// tokenizers and training experiment.
//
//   DIR/model.safetensors      weights, with the configuration and the experiment in its metadata
//   DIR/config.json            the same configuration, for other programs
//   DIR/tokenizer.SIDE.model   its SentencePiece models, if any
//   DIR/classes.tsv            its class names (image networks)
//   DIR/README.md              model card: data, scores, commit
#pragma once

#include <map>
#include <string>

#include "rondo/config/train_config.h"

namespace rondo {

std::string exported_model_path(const std::string& folder);

// Metadata keys of a model file: the experiment it came from (TOML, without data paths), and the
// SentencePiece model of a side, in base64.
constexpr const char* kExperimentKey = "rondo.experiment";
std::string embedded_tokenizer_key(const std::string& side);

// The experiment as metadata of a model file, for save_model(). `embed`: include the tokenizers of
// `run` (files, as returned by find_trained()).
std::map<std::string, std::string> experiment_metadata(const RunConfig& run, bool embed);

// The bytes of a SentencePiece model: a file or, as "mean.safetensors#joint", a side embedded in a
// model file. Throws Error{bad_input} if it is longer than `max_bytes` or not embedded.
std::string read_tokenizer_model(const std::string& spec, int64_t max_bytes);

std::string base64_encode(std::string_view bytes);
// Throws Error{bad_input} naming `source` if `text` is not base64.
std::string base64_decode(std::string_view text, const std::string& source);

}  // namespace rondo
