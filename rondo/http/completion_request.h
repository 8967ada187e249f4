// Parses and validates the bodies of /v1/completions and /v1/chat/completions. Model-independent.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "rondo/http/json_reader.h"

namespace rondo::http {

struct CompletionLimits {
  int64_t default_tokens = 256;
  int64_t max_tokens = 65536;
  int64_t max_choices = 8;     // n
  int64_t max_sequences = 16;  // prompts · n
  int64_t max_prompt_tokens = 1 << 20;
};

constexpr int64_t kMaxLogprobs = 20;

struct CompletionRequest {
  using Prompt = std::variant<std::string, std::vector<int32_t>>;  // text or token ids

  bool chat = false;
  std::string model;  // "" = the only model
  std::vector<Prompt> prompts;
  int64_t max_tokens = 256;
  double temperature = 1;
  double top_p = 1;
  int64_t top_k = 0;
  double repetition_penalty = 1;
  int64_t repetition_window = 64;
  bool has_seed = false;
  uint64_t seed = 0;
  std::vector<std::string> stop;
  int64_t n = 1;
  bool stream = false;
  bool include_usage = false;
  bool echo = false;
  int64_t logprobs = -1;  // number of alternatives; -1: not requested
  int64_t loops = 0;      // of the model's levels; 0: as trained
  std::string state;      // to continue from
  std::string save_state;
  bool state_gain = false;  // return the contribution of the recurrent state to each token
};

// ApiError{400} for a wrong type or an unsupported feature, ApiError{422} for a number out of
// range.
CompletionRequest read_completion(const nlohmann::json& body, const CompletionLimits& limits);
CompletionRequest read_chat(const nlohmann::json& body, const CompletionLimits& limits);

// ApiError{422} unless `name` matches [A-Za-z0-9_-]{1,64}.
void check_state_name(const std::string& name, const std::string& param);

}  // namespace rondo::http
