// From data on disk to an experiment: what a user has (a text, a parallel text, a folder of
// images), which recipe fits it, and what is held out to evaluate on.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rondo {

struct DataRequest {
  std::vector<std::string> paths;
  std::string recipe;     // "" = the small one of the task
  std::string tokenizer;  // "" = the recipe's; a number, bpe:N, unigram:N, bytes or a file
};

struct FoundData {
  std::string task;  // "lm", "translation" or "image"
  std::string recipe;
  std::string name;                // for the run folder
  std::vector<std::string> set;    // KEY=VALUE, as for --set
  std::vector<std::string> notes;  // what was found and decided, for the user
};

// Nothing if `paths` is one name that is not on the disk, or a TOML file: a recipe or a row of a
// table then. Error{bad_input} if there are files, but not of a kind that can be learned from.
std::optional<FoundData> find_data(const DataRequest& request);

// "bpe:4096" for "4096"; all else stays as it is.
std::string tokenizer_spec(const std::string& given);

}  // namespace rondo
