// What a client asks of a language model: the bodies of /v1/completions and /v1/chat/completions,
// checked. Knows no model.
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
  using Prompt = std::variant<std::string, std::vector<int32_t>>;  // text, or ids

  bool chat = false;
  std::string model;  // "" = the only one
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
  int64_t logprobs = -1;  // so many alternatives; -1: none asked for
  std::string state;      // continue from
  std::string save_state;
  bool state_gain = false;  // what the recurrent state was worth to each token
};

// ApiError{400} for a wrong type or what we cannot do, ApiError{422} for a number out of range.
CompletionRequest read_completion(const nlohmann::json& body, const CompletionLimits& limits);
CompletionRequest read_chat(const nlohmann::json& body, const CompletionLimits& limits);

// ApiError{422} unless it is [A-Za-z0-9_-]{1,64}.
void check_state_name(const std::string& name, const std::string& param);

}  // namespace rondo::http
