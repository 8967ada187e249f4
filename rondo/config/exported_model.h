// Models that leave their run folder, torch-free: exported folders, and model files that carry
// their tokenizers and what is known of their training.
//
//   DIR/model.safetensors      weights, with the configuration and the experiment in its metadata
//   DIR/config.json            the same configuration for other programs
//   DIR/tokenizer.SIDE.model   its SentencePiece models, if it has some
//   DIR/classes.tsv            the names of its classes (image networks)
//   DIR/README.md              model card: data, scores, commit
#pragma once

#include <map>
#include <string>

#include "rondo/config/train_config.h"

namespace rondo {

std::string exported_model_path(const std::string& folder);

// Where a model file keeps the experiment it came from (TOML, without the names of its data), and
// the SentencePiece model of a side, in base64.
constexpr const char* kExperimentKey = "rondo.experiment";
std::string embedded_tokenizer_key(const std::string& side);

// The experiment as metadata of a model file, for save_model(). `embed`: with the tokenizers of
// `run` (files, as find_trained() gives them) inside.
std::map<std::string, std::string> experiment_metadata(const RunConfig& run, bool embed);

// The bytes of a SentencePiece model: of a file, or, as "mean.safetensors#joint", of a side inside
// a model file. Error{bad_input} if it is longer than `max_bytes` or not there.
std::string read_tokenizer_model(const std::string& spec, int64_t max_bytes);

std::string base64_encode(std::string_view bytes);
// Error{bad_input} naming `source` if `text` is not base64.
std::string base64_decode(std::string_view text, const std::string& source);

}  // namespace rondo
