// GET /props: models, limits, versions.
#include <torch/version.h>

#include "rondo/base/version.h"
#include "rondo/infer/runtime.h"
#include "rondo/serve/api.h"

namespace rondo::serve {
namespace {

using nlohmann::json;

json limits_json(const Limits& l) {
  return {{"header_bytes", l.http.header_bytes},
          {"header_fields", l.http.header_fields},
          {"header_seconds", l.http.header_seconds},
          {"body_idle_seconds", l.http.body_idle_seconds},
          {"write_stall_seconds", l.http.write_stall_seconds},
          {"keep_alive_seconds", l.http.keep_alive_seconds},
          {"request_seconds", l.http.request_seconds},
          {"connections", l.http.connections},
          {"connections_per_address", l.http.connections_per_address},
          {"text_bytes", l.text_bytes},
          {"image_bytes", l.image_bytes},
          {"image_pixels", l.image_pixels},
          {"state_file_bytes", l.state_file_bytes},
          {"image_side", l.image_side},
          {"json_depth", l.http.json_depth},
          {"prompt_tokens", l.completion.max_prompt_tokens},
          {"default_max_tokens", l.completion.default_tokens},
          {"max_tokens", l.completion.max_tokens},
          {"n", l.completion.max_choices},
          {"beam", l.beam},
          {"lines", l.lines},
          {"sequences", l.completion.max_sequences},
          {"running", l.running},
          {"queue", l.queue},
          {"queue_seconds", l.http.queue_seconds},
          {"states", l.states},
          {"state_bytes", l.state_bytes},
          {"state_ttl_seconds", l.state_ttl_seconds},
          {"drain_seconds", l.drain_seconds}};
}

json language_json(const ServedLanguageModel& m) {
  const LanguageModelConfig& config = m.trained.model->config();
  json loops = json::array();  // the trained number first
  if (m.loops > 0) loops.push_back(m.loops);
  for (const auto& variant : m.variants) loops.push_back(variant->loops);
  return {{"name", m.name},
          {"vocabulary", config.vocabulary},
          {"tokenizer", m.trained.tokenizer->name() == "bytes" ? "bytes" : "sentencepiece"},
          {"time", config.time.kind},
          {"window", config.time.window},
          {"recurrent", m.recurrent},
          {"loops", loops},
          {"prompt_piece_tokens", m.scheduler->piece()},
          {"fingerprint", m.fingerprint}};
}

}  // namespace

void Api::props(const Request&, const Client& client) {
  const ServedModels& all = models();
  json language = json::array();
  json translation = json::array();
  json image = json::array();
  for (const auto& m : all.language) language.push_back(language_json(*m));
  for (const auto& m : all.translation) {
    translation.push_back({{"name", m->name},
                           {"source", m->trained.data.source},
                           {"target", m->trained.data.target}});
  }
  for (const auto& m : all.image) {
    image.push_back(
        {{"name", m->name}, {"classes", m->model.names.count()}, {"side", m->classifier->side()}});
  }
  reply_json(client, {{"version", kVersion},
                      {"libtorch", TORCH_VERSION},
                      {"threads", Runtime::get().threads()},
                      {"limits", limits_json(limits_)},
                      {"language", language},
                      {"translation", translation},
                      {"image", image},
                      {"chat_template",
                       "Role: text, with an empty line after each, then 'Assistant:'; "
                       "the models are not chat-tuned"},
                      {"running", engine_.running()},
                      {"queued", engine_.queued()},
                      {"memory_bytes", resident_bytes()},
                      {"completion_tokens", metrics_.completion_tokens.load()}});
}

}  // namespace rondo::serve
