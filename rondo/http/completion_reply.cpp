// Completions as JSON and as events.
#include "rondo/http/completion_reply.h"

#include <fmt/format.h>

#include <algorithm>

namespace rondo::http {
namespace {

int64_t characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

std::string numbers_json(const std::vector<double>& numbers) {
  std::string out = "[";
  for (size_t i = 0; i < numbers.size(); ++i)
    out += fmt::format("{}{:.4f}", i == 0 ? "" : ",", numbers[i]);
  return out + "]";
}

std::string text_logprobs_json(const std::vector<TokenLogprob>& tokens, int64_t& offset) {
  std::string names;
  std::string values;
  std::string tops;
  std::string offsets;
  for (const TokenLogprob& t : tokens) {
    const char* comma = names.empty() ? "" : ",";
    names += comma + json_string(t.text);
    values += t.known ? fmt::format("{}{:.6f}", comma, t.logprob) : fmt::format("{}null", comma);
    std::string top;
    std::vector<std::string> seen;  // different tokens may have the same text
    for (const auto& [text, logprob] : t.top) {
      if (std::find(seen.begin(), seen.end(), text) != seen.end()) continue;
      seen.push_back(text);
      top += fmt::format("{}{}:{:.6f}", top.empty() ? "" : ",", json_string(text), logprob);
    }
    tops += t.known ? fmt::format("{}{{{}}}", comma, top) : fmt::format("{}null", comma);
    offsets += fmt::format("{}{}", comma, offset);
    offset += characters(t.text);
  }
  return fmt::format(
      R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", names,
      values, tops, offsets);
}

std::string chat_token_json(const std::string& text, double logprob) {
  std::string bytes;
  for (const char c : text) {
    bytes += fmt::format("{}{}", bytes.empty() ? "" : ",", static_cast<unsigned char>(c));
  }
  return fmt::format(R"("token":{},"logprob":{:.6f},"bytes":[{}])", json_string(text), logprob,
                     bytes);
}

std::string chat_logprobs_json(const std::vector<TokenLogprob>& tokens) {
  std::string all;
  for (const TokenLogprob& t : tokens) {
    std::string top;
    for (const auto& [text, logprob] : t.top) {
      top += fmt::format("{}{{{}}}", top.empty() ? "" : ",", chat_token_json(text, logprob));
    }
    all += fmt::format(R"({}{{{},"top_logprobs":[{}]}})", all.empty() ? "" : ",",
                       chat_token_json(t.text, t.logprob), top);
  }
  return fmt::format(R"({{"content":[{}],"refusal":null}})", all);
}

}  // namespace

std::string usage_json(const Usage& u) {
  return fmt::format(R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},)"
                     R"("prompt_tokens_details":{{"cached_tokens":{}}}}})",
                     u.prompt_tokens, u.completion_tokens, u.prompt_tokens + u.completion_tokens,
                     u.cached_tokens);
}

CompletionReply::CompletionReply(std::shared_ptr<Exchange> exchange,
                                 const CompletionRequest& request, std::string model,
                                 std::string id, int64_t created, uint64_t seed)
    : exchange_(std::move(exchange)),
      chat_(request.chat),
      stream_(request.stream),
      include_usage_(request.include_usage),
      with_logprobs_(request.logprobs >= 0),
      model_(std::move(model)),
      id_(std::move(id)),
      created_(created),
      seed_(seed),
      choices_(request.prompts.size() * static_cast<size_t>(request.n)) {}

std::string CompletionReply::head(const char* kind) const {
  return fmt::format(R"({{"id":"{}","object":"{}","created":{},"model":{},"seed":{},)", id_, kind,
                     created_, json_string(model_), seed_);
}

std::string CompletionReply::logprobs_json(const std::vector<TokenLogprob>& tokens,
                                           int64_t& offset) const {
  if (!with_logprobs_) return "null";
  return chat_ ? chat_logprobs_json(tokens) : text_logprobs_json(tokens, offset);
}

void CompletionReply::begin() {
  if (begun_) return;
  begun_ = true;
  exchange_->begin_stream("text/event-stream; charset=utf-8");
  if (!chat_) return;
  for (size_t i = 0; i < choices_.size(); ++i) {
    exchange_->send(fmt::format(
        "data: {}\"choices\":[{{\"index\":{},\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},"
        "\"logprobs\":null,\"finish_reason\":null}}]}}\n\n",
        head("chat.completion.chunk"), i));
  }
}

void CompletionReply::send_chunk(size_t choice, const std::string& text,
                                 const std::string& logprobs, const std::string& reason) {
  begin();
  const std::string finish = reason.empty() ? "null" : json_string(reason);
  std::string body;
  if (chat_) {
    const std::string delta =
        text.empty() ? "{}" : fmt::format("{{\"content\":{}}}", json_string(text));
    body =
        fmt::format(R"("choices":[{{"index":{},"delta":{},"logprobs":{},"finish_reason":{}}}]}})",
                    choice, delta, logprobs, finish);
  } else {
    body = fmt::format(R"("choices":[{{"text":{},"index":{},"logprobs":{},"finish_reason":{}}}]}})",
                       json_string(text), choice, logprobs, finish);
  }
  exchange_->send("data: " + head(chat_ ? "chat.completion.chunk" : "text_completion") + body +
                  "\n\n");
}

void CompletionReply::text(size_t choice, const std::string& text,
                           const std::vector<TokenLogprob>& logprobs) {
  Choice& c = choices_[choice];
  if (stream_) {
    if (!text.empty() || !logprobs.empty()) {
      send_chunk(choice, text, logprobs_json(logprobs, c.offset), "");
    }
    return;
  }
  c.text += text;
  c.logprobs.insert(c.logprobs.end(), logprobs.begin(), logprobs.end());
}

void CompletionReply::finish(size_t choice, const std::string& reason) {
  choices_[choice].reason = reason;
  if (stream_) send_chunk(choice, "", "null", reason);
}

void CompletionReply::state_gain(size_t choice, int64_t first, const std::vector<double>& gains) {
  Choice& c = choices_[choice];
  if (!stream_) {
    c.gains.insert(c.gains.end(), gains.begin(), gains.end());
    return;
  }
  begin();
  exchange_->send(
      fmt::format("data: "
                  "{{\"object\":\"rondo.state_gain\",\"choices\":[],\"index\":{},\"first\":{},"
                  "\"gains\":{}}}\n\n",
                  choice, first, numbers_json(gains)));
}

std::string CompletionReply::choice_json(size_t index) {
  Choice& c = choices_[index];
  std::string out = "{";
  if (chat_) {
    out += fmt::format(R"("message":{{"role":"assistant","content":{},"refusal":null}},)",
                       json_string(c.text));
  } else {
    out += fmt::format("\"text\":{},", json_string(c.text));
  }
  if (!c.gains.empty()) out += fmt::format("\"state_gain\":{},", numbers_json(c.gains));
  return out + fmt::format(R"("index":{},"logprobs":{},"finish_reason":{}}})", index,
                           logprobs_json(c.logprobs, c.offset), json_string(c.reason));
}

void CompletionReply::end(const Usage& usage) {
  if (stream_) {
    begin();
    if (include_usage_) {
      exchange_->send("data: " + head(chat_ ? "chat.completion.chunk" : "text_completion") +
                      R"("choices":[],"usage":)" + usage_json(usage) + "}\n\n");
    }
    exchange_->send("data: [DONE]\n\n");
    return exchange_->end();
  }
  std::string body = head(chat_ ? "chat.completion" : "text_completion") + "\"choices\":[";
  for (size_t i = 0; i < choices_.size(); ++i) body += (i == 0 ? "" : ",") + choice_json(i);
  Response response;
  response.body = body + "],\"usage\":" + usage_json(usage) + "}";
  exchange_->reply(std::move(response));
}

void CompletionReply::fail(const ApiError& error) {
  if (!begun_) return exchange_->reply(error.response());
  exchange_->send("data: " + error.json() + "\n\n");
  exchange_->end();
}

}  // namespace rondo::http
