// Validating completion requests.
#include "rondo/http/completion_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/base/limits.h"
#include "rondo/base/text.h"

namespace rondo::http {
namespace {

using nlohmann::json;

constexpr size_t kMostStops = 16;
constexpr size_t kLongestStop = 256;

bool is_ids(const json& list) {
  return list.is_array() && !list.empty() && list.front().is_number();
}

std::vector<int32_t> read_ids(const json& list, int64_t most) {
  if (static_cast<int64_t>(list.size()) > most) {
    throw ApiError(413,
                   fmt::format("prompt: expected at most {} tokens, got {}", most, list.size()),
                   "prompt");
  }
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const json& id : list) {
    const bool fits = id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX;
    if (!fits) {
      throw ApiError(400, "prompt: expected non-negative integer token ids", "prompt");
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

CompletionRequest::Prompt read_prompt(const json& prompt, const CompletionLimits& limits) {
  if (prompt.is_string()) return prompt.get<std::string>();
  if (is_ids(prompt)) return read_ids(prompt, limits.max_prompt_tokens);
  throw ApiError(400, "prompt: expected a string, a list of token ids, or a list of these",
                 "prompt");
}

std::vector<CompletionRequest::Prompt> read_prompts(const JsonReader& in,
                                                    const CompletionLimits& limits) {
  const json* prompt = in.find("prompt");
  if (prompt == nullptr) return {std::string()};
  if (!prompt->is_array() || is_ids(*prompt)) return {read_prompt(*prompt, limits)};
  if (prompt->empty()) throw ApiError(400, "prompt: the list is empty", "prompt");
  if (static_cast<int64_t>(prompt->size()) > limits.max_sequences) {
    throw ApiError(422,
                   fmt::format("prompt: expected at most {} prompts, got {}", limits.max_sequences,
                               prompt->size()),
                   "prompt");
  }
  std::vector<CompletionRequest::Prompt> all;
  for (const json& one : *prompt) all.push_back(read_prompt(one, limits));
  return all;
}

// Fields common to both kinds of completion.
CompletionRequest read_common(const JsonReader& in, const CompletionLimits& limits) {
  CompletionRequest r;
  r.model = in.text("model", "");
  const char* length = in.has("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
  r.max_tokens = in.integer(length, limits.default_tokens, 0, limits.max_tokens);
  r.temperature = in.number("temperature", 1, 0, 100);
  r.top_p = in.number("top_p", 1, 0, 1);
  r.top_k = std::max<int64_t>(0, in.integer("top_k", 0, -1, 1 << 24));
  r.repetition_penalty = in.number("repetition_penalty", 1, 0.01, 100);
  r.repetition_window = in.integer("repetition_window", 64, 1, kMaxRepetitionWindow);
  r.has_seed = in.has("seed");
  r.seed = in.seed("seed", 0);
  r.stop = in.texts("stop", kMostStops);
  for (const std::string& stop : r.stop) {
    if (stop.empty() || stop.size() > kLongestStop) {
      throw ApiError(422, fmt::format("stop: expected strings of 1 to {} bytes", kLongestStop),
                     "stop");
    }
  }
  r.n = in.integer("n", 1, 1, limits.max_choices);
  r.stream = in.boolean("stream", false);
  if (const json* options = in.find("stream_options")) {
    r.include_usage = JsonReader(*options, "stream_options").boolean("include_usage", false);
  }
  r.state = in.text("state", "");
  r.save_state = in.text("save_state", "");
  if (!r.state.empty()) check_state_name(r.state, "state");
  if (!r.save_state.empty()) check_state_name(r.save_state, "save_state");
  r.loops = in.integer("loops", 0, 0, INT32_MAX);
  r.state_gain = in.boolean("state_gain", false);
  for (const char* name : {"presence_penalty", "frequency_penalty"}) in.refuse(name, 0);
  for (const char* name : {"logit_bias", "tools", "functions", "suffix"}) in.refuse(name, "");
  in.refuse("best_of", 1);
  in.refuse("response_format", {{"type", "text"}});
  return r;
}

void check_choices(const CompletionRequest& r, const CompletionLimits& limits) {
  const auto sequences = static_cast<int64_t>(r.prompts.size()) * r.n;
  if (sequences > limits.max_sequences) {
    throw ApiError(422,
                   fmt::format("n: expected at most {} sequences, got {} prompts times {}",
                               limits.max_sequences, r.prompts.size(), r.n),
                   "n");
  }
  if (!r.save_state.empty() && sequences > 1) {
    throw ApiError(422, "save_state: requires one prompt and n = 1", "save_state");
  }
}

std::string message_text(const JsonReader& message) {
  const json* content = message.find("content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) message.wrong_type("content", "a string or a list of parts", *content);
  std::string text;
  for (const json& part : *content) {
    const JsonReader in(part, message.path("content"));
    if (in.text("type", "text") != "text") {
      throw ApiError(400, message.path("content") + ": only parts of type 'text' are supported",
                     message.path("content"));
    }
    text += in.text("text", "");
  }
  return text;
}

// The template: "Role: text", a blank line between messages, and the assistant's turn opened.
std::string chat_prompt(const JsonReader& in) {
  const json* messages = in.find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty()) {
    throw ApiError(400, "messages: expected a list of one or more messages", "messages");
  }
  std::string prompt;
  for (size_t i = 0; i < messages->size(); ++i) {
    const JsonReader message((*messages)[i], fmt::format("messages[{}]", i));
    std::string role = message.text("role", "");
    if (role == "developer") role = "system";
    if (role != "system" && role != "user" && role != "assistant") {
      throw ApiError(400, message.path("role") + ": expected system, user or assistant",
                     message.path("role"));
    }
    role.front() = static_cast<char>(role.front() - 'a' + 'A');
    prompt += fmt::format("{}: {}\n\n", role, message_text(message));
  }
  return prompt + "Assistant:";
}

}  // namespace

void check_state_name(const std::string& name, const std::string& param) {
  const bool fits = !name.empty() && name.size() <= 64 &&
                    name.find_first_not_of(
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                        "0123456789_-") == std::string::npos;
  if (fits) return;
  throw ApiError(422,
                 "expected a state name of 1 to 64 letters, digits, '_' or '-', got '" +
                     printable(name, 80) + "'",
                 param);
}

CompletionRequest read_completion(const json& body, const CompletionLimits& limits) {
  const JsonReader in(body);
  CompletionRequest r = read_common(in, limits);
  r.prompts = read_prompts(in, limits);
  r.echo = in.boolean("echo", false);
  if (in.has("logprobs")) {
    const json& wanted = *in.find("logprobs");
    const bool yes = wanted.is_boolean();
    r.logprobs = yes ? (wanted.get<bool>() ? 0 : -1) : in.integer("logprobs", 0, 0, kMaxLogprobs);
  }
  check_choices(r, limits);
  return r;
}

CompletionRequest read_chat(const json& body, const CompletionLimits& limits) {
  const JsonReader in(body);
  CompletionRequest r = read_common(in, limits);
  r.chat = true;
  r.prompts = {chat_prompt(in)};
  r.stop.emplace_back("\n\nUser:");
  if (in.boolean("logprobs", false)) r.logprobs = in.integer("top_logprobs", 0, 0, kMaxLogprobs);
  check_choices(r, limits);
  return r;
}

}  // namespace rondo::http
