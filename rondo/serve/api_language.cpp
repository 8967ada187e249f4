// Completions, chat, tokenization.
#include <fmt/format.h>

#include "rondo/http/text_output.h"
#include "rondo/serve/api.h"
#include "rondo/serve/completion.h"

namespace rondo::serve {

using nlohmann::json;

void Api::complete(const http::CompletionRequest& request, const Client& client) {
  ServedLanguageModel& model = models().find_language(request.model, request.loops);
  engine_.submit(std::make_shared<Completion>(request, client, model, states_, limits_, metrics_));
}

void Api::completions(const Request& request, const Client& client) {
  complete(http::read_completion(json_of(request), limits_.completion), client);
}

void Api::chat(const Request& request, const Client& client) {
  complete(http::read_chat(json_of(request), limits_.completion), client);
}

void Api::tokenize(const Request& request, const Client& client) {
  const json body = json_of(request);
  const http::JsonReader in(body);
  const ServedLanguageModel& model = models().find_language(in.text("model", ""));
  const std::vector<int32_t> tokens = model.trained.tokenizer->encode(in.text("content", ""));
  if (!in.boolean("with_pieces", false)) return reply_json(client, {{"tokens", tokens}});
  json pieces = json::array();
  for (const int32_t token : tokens) {
    http::Utf8Stream text;
    std::string piece = text.push(model.trained.tokenizer->decode({token}));
    piece += text.finish();
    pieces.push_back({{"id", token}, {"piece", piece}});
  }
  reply_json(client, {{"tokens", pieces}});
}

void Api::detokenize(const Request& request, const Client& client) {
  const json body = json_of(request);
  const http::JsonReader in(body);
  const ServedLanguageModel& model = models().find_language(in.text("model", ""));
  const json* list = in.find("tokens");
  if (list == nullptr || !list->is_array()) {
    throw http::ApiError(400, "tokens: expected a list of token ids", "tokens");
  }
  const auto vocabulary = static_cast<uint64_t>(model.trained.model->config().vocabulary);
  std::vector<int32_t> tokens;
  for (const json& id : *list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocabulary) {
      throw http::ApiError(
          400, fmt::format("tokens: expected whole numbers from 0 to {}", vocabulary - 1),
          "tokens");
    }
    tokens.push_back(id.get<int32_t>());
  }
  http::Utf8Stream text;
  std::string content = text.push(model.trained.tokenizer->decode(tokens));
  content += text.finish();
  reply_json(client, {{"content", content}});
}

}  // namespace rondo::serve
