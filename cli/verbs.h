// Options of each verb, described in cli/describe_*.cpp. Verbs that need torch run in
// librondo_engine.so, which receives its options as text, so that the program itself stays light.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/tables/table_run.h"

namespace rondo::cli {

struct ModelsOptions {
  std::string task;
  bool json = false;
};

struct InfoOptions {
  std::string model;
  std::vector<std::string> set;
  bool json = false;
  bool toml = false;
  int64_t image = 0;
  int64_t classes = 0;
  int64_t vocabulary = 0;
  int64_t tokens = 0;
  std::string count = "macs";
};

// How a verb computes.
struct ComputeOptions {
  int64_t threads = 0;  // 0: one per core
  std::string kernels = "fused";
};

// How a verb reads model and state files.
struct LoadOptions {
  bool verify = true;  // verify checksums
};

struct ForwardOptions {
  std::string model;
  std::vector<std::string> set;
  std::string weights;
  std::string input;
  std::string output;
  std::string state_in;
  std::string state_out;
  std::vector<std::string> probes;
  bool train = false;
  bool gradients = false;
  uint64_t seed = 1;
  LoadOptions load;
  ComputeOptions compute;
};

struct ImportOptions {
  std::string program;
  std::string file;
  std::string config;
  std::vector<std::string> set;
  std::string output;
  std::string classes;
  bool all = false;  // list every mismatched tensor
};

struct TrainOptions {
  // A recipe, a TOML file, a row of a table; data; or a run to resume. The engine always gets one
  // of the first three (cli/run_verbs.cpp).
  std::vector<std::string> what;
  std::string recipe;     // for data
  std::string tokenizer;  // for data
  bool mini = false;
  std::vector<std::string> data;  // NAME=DIR
  std::vector<std::string> set;
  std::string run;
  std::string cache;
  std::string kernels = "fused";
  bool dry_run = false;
  bool json = false;  // for a dry run
  bool show_config = false;
  // Several processes (rondo/train/group_place.h).
  int64_t workers = 0;
  std::string group_file;
  std::string group_address;
  std::string group_secret;
  double group_timeout = 60;
};

struct NewOptions {
  std::string name;
  std::string recipe = "small-text";
  bool mini = false;
};

struct RunsOptions {
  std::string folder = "runs";
  bool json = false;
};

struct ExportOptions {
  std::string run;
  std::string output;
  std::string precision = "fp32";
  LoadOptions load;
};

// How a translation model is decoded.
struct DecodingOptions {
  int64_t beam = 5;
  double length_penalty = 1.0;
  int64_t max_length = 256;
  int64_t batch = 32;
  std::string precision = "fp32";
  std::string signals = "folded";
};

struct EvalOptions {
  std::string run;
  std::string data;
  std::string split = "test";
  std::string tokenizer;
  std::string cache;
  std::string state_in;
  std::string state_out;
  int64_t rows = 8;
  int64_t tokens = 0;
  LoadOptions load;
  ComputeOptions compute;
  bool json = false;
  bool without_state = false;
  // Translation models.
  DecodingOptions decoding;
  std::string tokenize = "13a";
  bool score_only = false;
  bool agreement = false;
  int64_t loops = 0;  // image networks
  std::string items;  // file for the result of every test item
};

// Two models on the same test set.
struct CompareOptions {
  EvalOptions eval;  // of the first model
  std::string other;
};

struct TranslateOptions {
  std::string run;
  std::string tokenizer;
  std::string input = "-";
  DecodingOptions decoding;
  int64_t n_best = 1;
  int64_t buffer = 1000;
  LoadOptions load;
  ComputeOptions compute;
  bool json = false;
};

struct ClassifyOptions {
  std::string run;
  std::vector<std::string> paths;
  std::string list;
  std::string classes;
  std::vector<std::string> set;
  int64_t top = 5;
  int64_t batch = 32;
  int64_t loops = 0;
  LoadOptions load;
  ComputeOptions compute;
  bool json = false;
};

struct DataCheckOptions {
  std::vector<std::string> paths;
  int64_t threads = 0;
  bool json = false;
};

struct DataPreviewOptions {
  std::string config;  // a recipe, a TOML file or a row of a table
  bool mini = false;
  std::vector<std::string> folders;  // NAME=DIR
  std::vector<std::string> set;
  std::string output;
  std::string split = "train";
  int64_t rows = 6;
  int64_t columns = 8;
  bool original = false;
};

struct DataGetOptions {
  std::string name;
};

struct AverageOptions {
  std::vector<std::string> models;
  std::string output;
  int64_t last = 0;
  LoadOptions load;
};

struct GenerateOptions {
  std::string run;
  std::string prompt;
  std::string prompt_file;
  std::string state_in;
  std::string state_out;
  std::string tokenizer;
  int64_t tokens = 256;
  double temperature = 1.0;
  int64_t top_k = 0;
  double top_p = 1.0;
  double repetition_penalty = 1.0;
  int64_t repetition_window = 64;
  std::string precision = "fp32";
  uint64_t seed = 1;
  LoadOptions load;
  ComputeOptions compute;
  bool stream = false;
  bool stats = false;
};

struct StateReadOptions {
  std::string run;
  std::string document;
  std::string state;  // to continue from
  std::string output;
  std::string tokenizer;
  LoadOptions load;
  ComputeOptions compute;
};

struct StateInfoOptions {
  std::string state;
  LoadOptions load;
  bool json = false;
};

struct StateForkOptions {
  std::string state;
  std::string output;
  LoadOptions load;
};

struct TokenizerOptions {
  std::vector<std::string> sources;
  std::string output;
  int64_t vocabulary = 4096;
  std::string type = "bpe";
};

struct ScoreOptions {
  std::string hypotheses;
  std::vector<std::string> references;
  std::string against;
  std::string metrics = "bleu,chrf";
  std::string tokenize = "13a";
  std::string smooth = "exp";
  bool effective_order = false;
  bool lowercase = false;
  bool chrf_lowercase = false;
  int64_t chrf_word_order = 0;
  bool confidence = false;
  int64_t samples = 1000;
  uint64_t seed = 12345;
  bool score_only = false;
  bool json = false;
};

struct DoctorOptions {
  bool json = false;
};

struct BenchOptions {
  std::vector<std::string> names;
  std::vector<std::string> set;  // overrides for `data`
  std::string data;              // a recipe or row whose data loading is timed instead
  bool mini = false;             // at its mini size
  std::string cache;
  std::string python;     // runs the peers; empty = the system's
  std::string peers;      // folder of the peer scripts; empty = the ones shipped with Rondo
  std::string memory_of;  // what this child process of the case `memory` measures
  int64_t rounds = 5;
  ComputeOptions compute;
  bool all = false;
  bool list = false;
  bool no_peers = false;
  bool processor_time = false;
  bool json = false;
};

struct TableRunVerb {
  TableRunOptions run;
  bool dry_run = false;
};

struct TableShowOptions {
  std::vector<std::string> folders;
  bool markdown = false;
  bool json = false;
  bool html = false;
  std::string pages;
  std::string output;
};

struct TableRecordOptions {
  std::string folder;
  std::string output;
};

// `recipes` and `table list`.
struct RecipesOptions {
  bool json = false;
};

struct HelpOptions {
  std::vector<std::string> verb;
};

struct CompletionOptions {
  std::string shell;
};

struct ManOptions {
  std::string folder;
};

struct ConfigOptions {
  std::string kind;
  std::string section = "model";
  bool json = false;
};

class OptionVisitor;  // cli/options.h
void describe(OptionVisitor& v, ModelsOptions& o);
void describe(OptionVisitor& v, InfoOptions& o);
void describe(OptionVisitor& v, ForwardOptions& o);
void describe(OptionVisitor& v, ImportOptions& o);
void describe(OptionVisitor& v, TrainOptions& o);
void describe(OptionVisitor& v, NewOptions& o);
void describe(OptionVisitor& v, RunsOptions& o);
void describe(OptionVisitor& v, ExportOptions& o);
void describe(OptionVisitor& v, EvalOptions& o);
void describe(OptionVisitor& v, CompareOptions& o);
void describe(OptionVisitor& v, TranslateOptions& o);
void describe(OptionVisitor& v, ClassifyOptions& o);
void describe(OptionVisitor& v, DataCheckOptions& o);
void describe(OptionVisitor& v, DataPreviewOptions& o);
void describe(OptionVisitor& v, DataGetOptions& o);
void describe(OptionVisitor& v, AverageOptions& o);
void describe(OptionVisitor& v, GenerateOptions& o);
void describe(OptionVisitor& v, StateReadOptions& o);
void describe(OptionVisitor& v, StateInfoOptions& o);
void describe(OptionVisitor& v, StateForkOptions& o);
void describe(OptionVisitor& v, TokenizerOptions& o);
void describe(OptionVisitor& v, ScoreOptions& o);
void describe(OptionVisitor& v, DoctorOptions& o);
void describe(OptionVisitor& v, BenchOptions& o);
void describe(OptionVisitor& v, TableRunVerb& o);
void describe(OptionVisitor& v, TableShowOptions& o);
void describe(OptionVisitor& v, TableRecordOptions& o);
void describe(OptionVisitor& v, RecipesOptions& o);
void describe(OptionVisitor& v, ConfigOptions& o);
void describe(OptionVisitor& v, HelpOptions& o);
void describe(OptionVisitor& v, CompletionOptions& o);
void describe(OptionVisitor& v, ManOptions& o);

// Torch-free.
void run_models(const ModelsOptions& options);
void run_config(const ConfigOptions& options);
void run_info_toml(const InfoOptions& options);
// Throws if a model's name or configuration is invalid, before torch is loaded.
void check_model(const std::string& model, const std::vector<std::string>& set);
// The same for a run folder or model file; `task`: the task required, "" = any. Returns its task.
std::string check_trained(const std::string& run, const std::string& task);
void run_tokenizer_train(const TokenizerOptions& options);
void run_score(const ScoreOptions& options);
void run_data_check(const DataCheckOptions& options);
void run_data_preview(const DataPreviewOptions& options);
void run_data_get(const DataGetOptions& options);
void run_new(const NewOptions& options);
void run_runs(const RunsOptions& options);
// `rondo info` of a run folder or an exported folder.
void run_info_run(const InfoOptions& options);
bool is_described_folder(const std::string& path);
void run_recipes(const RecipesOptions& options);
void run_table_list(const RecipesOptions& options);
void run_table_show(const TableShowOptions& options);
void run_table_record(const TableRecordOptions& options);

}  // namespace rondo::cli
