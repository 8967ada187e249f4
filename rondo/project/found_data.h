// From data on disk to an experiment: detects the kind of data (text, parallel text, a folder of
// images), chooses a recipe, and holds out validation data.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rondo {

struct DataRequest {
  std::vector<std::string> paths;
  std::string recipe;     // "" = the small recipe of the task
  std::string tokenizer;  // "" = the recipe's; a number, bpe:N, unigram:N, bytes or a file
};

struct FoundData {
  std::string task;  // "lm", "translation" or "image"
  std::string recipe;
  std::string name;                // for the run folder
  std::vector<std::string> set;    // KEY=VALUE, as for --set
  std::vector<std::string> notes;  // findings and decisions, for the user
};

// nullopt if `paths` is a single name that does not exist on disk, or a TOML file: then it is a
// recipe or a table row. Throws Error{bad_input} if the files cannot be trained on.
std::optional<FoundData> find_data(const DataRequest& request);

// "bpe:4096" for "4096"; anything else is unchanged.
std::string tokenizer_spec(const std::string& given);

}  // namespace rondo
